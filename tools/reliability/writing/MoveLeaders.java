import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.*;

/** Has each partition of a topic led by the next of its replicas: `bootstrapServers topic`, and then how many have moved. */
class MoveLeaders {
    public static void main(String[] args) {
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ");
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", question[0]))) {
                System.out.println(move(admin, question[1]));
            } catch (Exception e) {
                System.out.println("error " + e);
            }
            System.out.flush();
        }
    }

    static int move(Admin admin, String topic) throws Exception {
        Map<TopicPartition, Optional<NewPartitionReassignment>> wanted = new HashMap<>();
        for (TopicPartitionInfo each : admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()) {
            List<Integer> replicas = new ArrayList<>(each.replicas().stream().map(Node::id).toList());
            Collections.rotate(replicas, 1);
            wanted.put(new TopicPartition(topic, each.partition()), Optional.of(new NewPartitionReassignment(replicas)));
        }
        admin.alterPartitionReassignments(wanted).all().get();
        while (!admin.listPartitionReassignments(wanted.keySet()).reassignments().get().isEmpty()) Thread.sleep(10);
        Map<TopicPartition, Optional<Throwable>> moved =
            admin.electLeaders(ElectionType.PREFERRED, wanted.keySet()).partitions().get();
        return (int) moved.values().stream().filter(Optional::isEmpty).count();
    }
}
