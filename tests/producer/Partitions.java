import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

/** Kafka's own hash and partition of keys: a line of `key partitionCount` each, the key in hexadecimal. */
class Partitions {
    public static void main(String[] args) {
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ", -1);
            byte[] key = HexFormat.of().parseHex(question[0]);
            int count = Integer.parseInt(question[1]);
            System.out.printf("%08x %d%n", Utils.murmur2(key), BuiltInPartitioner.partitionForKey(key, count));
            System.out.flush();
        }
    }
}
