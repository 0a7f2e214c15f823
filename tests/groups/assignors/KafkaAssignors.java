import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.StringJoiner;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors, asked by lines on stdin: one answer a line. See kafka_assignors.py.
 * All texts are in hexadecimal, "-" is null; words are parted by spaces, their parts by commas.
 */
class KafkaAssignors {
    public static void main(String[] args) {
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ", -1);
            try {
                System.out.println(answer(question));
            } catch (Exception e) {
                System.out.println("error " + e.toString().replace('\n', ' '));
            }
            System.out.flush();
        }
    }

    /** What does not end goes on, until the JVM does. */
    static String within(int seconds, Callable<String> question) throws Exception {
        FutureTask<String> asked = new FutureTask<>(question);
        Thread thread = new Thread(asked);
        thread.setDaemon(true);
        thread.start();
        return asked.get(seconds, TimeUnit.SECONDS);
    }

    static String answer(String[] question) throws Exception {
        return switch (question[0]) {
            case "assign" -> within(
                Integer.parseInt(question[1]), () -> assign(assignor(question[2]), question[3], question[4]));
            case "user-data" -> userData(assignor(question[1]), question[2], Integer.parseInt(question[3]));
            case "subscription" -> hex(ConsumerProtocol.serializeSubscription(subscription(question[1])));
            case "assignment" -> hex(ConsumerProtocol.serializeAssignment(
                ConsumerProtocol.deserializeAssignment(bytes(question[1]))));
            case "hash-order" -> hashOrder(question[1].equals("computed"), question[2].split(","));
            case "first-of-set" -> firstOfSet(text(question[1]), question[2].split(","));
            default -> throw new IllegalArgumentException("no such question");
        };
    }

    static String hashOrder(boolean computed, String[] texts) {
        Map<String, String> found = new HashMap<>();
        for (String text : texts) {
            if (computed) found.computeIfAbsent(text(text), t -> t);
            else found.put(text(text), text);
        }
        StringJoiner order = new StringJoiner(",");
        for (String text : found.keySet()) order.add(hex(StandardCharsets.UTF_8.encode(text)));
        return order.toString();
    }

    /** The first of a set into which each partition is put, or out of which, if it was in. */
    static String firstOfSet(String topic, String[] partitions) {
        Set<TopicPartition> found = new HashSet<>();
        for (String partition : partitions) {
            TopicPartition each = new TopicPartition(topic, Integer.parseInt(partition));
            if (!found.remove(each)) found.add(each);
        }
        return Integer.toString(found.iterator().next().partition());
    }

    static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException("no such assignor");
        };
    }

    /** As ConsumerCoordinator.onLeaderElected() does; `members` are id:instance:subscription. */
    static String assign(ConsumerPartitionAssignor assignor, String topics, String members) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (String member : members.split(",")) {
            String[] parts = member.split(":", -1);
            Subscription subscription = subscription(parts[2]);
            subscription.setGroupInstanceId(Optional.ofNullable(text(parts[1])));
            subscriptions.put(text(parts[0]), subscription);
        }
        StringJoiner found = new StringJoiner(" ");
        assignor.assign(cluster(topics), new GroupSubscription(subscriptions)).groupAssignment().forEach(
            (member, assignment) -> found.add(
                hex(StandardCharsets.UTF_8.encode(member)) + ":" + hex(ConsumerProtocol.serializeAssignment(assignment))));
        return found.toString();
    }

    /** `topics` are name:partition:partition..., and a partition is the racks of its replicas, rack/rack/... */
    static Cluster cluster(String topics) {
        List<PartitionInfo> partitions = new ArrayList<>();
        List<Node> nodes = new ArrayList<>();
        for (String topic : topics.split(",")) {
            String[] parts = topic.split(":", -1);
            for (int i = 1; i < parts.length; i++) {
                List<Node> replicas = new ArrayList<>();
                for (String rack : parts[i].split("/")) {
                    nodes.add(new Node(nodes.size(), "host", 9092, rack.isEmpty() ? null : text(rack)));
                    replicas.add(nodes.get(nodes.size() - 1));
                }
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(text(parts[0]), i - 1, all[0], all, all));
            }
        }
        return new Cluster("cluster", nodes, partitions, Set.of(), Set.of());
    }

    @SuppressWarnings("removal")
    static String userData(ConsumerPartitionAssignor assignor, String assignment, int generation) {
        if (!assignment.equals("-"))
            assignor.onAssignment(
                ConsumerProtocol.deserializeAssignment(bytes(assignment)),
                new ConsumerGroupMetadata("group", generation, "member", Optional.empty()));
        return hex(assignor.subscriptionUserData(Set.of()));
    }

    static Subscription subscription(String hex) {
        return ConsumerProtocol.deserializeSubscription(bytes(hex));
    }

    static ByteBuffer bytes(String hex) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }

    static String text(String hex) {
        return hex.equals("-") ? null : new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }

    static String hex(ByteBuffer bytes) {
        if (bytes == null) return "-";
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
