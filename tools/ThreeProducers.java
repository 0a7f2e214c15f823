import java.util.*;
import java.util.concurrent.Future;
import java.util.stream.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Records without a key by Kafka's own producer: a line for each run, and a line of its outcome. See three_producers.py. */
class ThreeProducers {
    public static void main(String[] args) throws Exception {
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ");
            try {
                System.out.println(sent(question));
            } catch (Exception e) {
                System.out.println("error " + e);
            }
            System.out.flush();
        }
    }

    /** `TOPIC COUNT BYTES PAUSE_US name=value ...`: the bytes of all requests, and the partition of each record. */
    static String sent(String[] question) throws Exception {
        String topic = question[0];
        int count = Integer.parseInt(question[1]), bytes = Integer.parseInt(question[2]);
        long pauseNs = Long.parseLong(question[3]) * 1000;
        Map<String, Object> config = Arrays.stream(question).skip(4).map(each -> each.split("=", 2))
            .collect(Collectors.toMap(each -> each[0], each -> each[1]));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        ByteArraySerializer plain = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, plain, plain)) {
            producer.partitionsFor(topic);
            long next = System.nanoTime();
            byte[] value = new byte[bytes];
            for (int number = 0; number < count; number++) {
                sent.add(producer.send(new ProducerRecord<>(topic, value)));
                next += pauseNs;
                for (long left; (left = next - System.nanoTime()) > 0; )
                    Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
            }
            producer.flush();
            StringJoiner partitions = new StringJoiner(",");
            for (Future<RecordMetadata> each : sent) partitions.add(Integer.toString(each.get().partition()));
            return total(producer) + " " + partitions;
        }
    }

    static long total(KafkaProducer<byte[], byte[]> producer) {
        return producer.metrics().entrySet().stream()
            .filter(each -> each.getKey().name().equals("outgoing-byte-total") && each.getKey().group().equals("producer-metrics"))
            .mapToLong(each -> ((Double) each.getValue().metricValue()).longValue()).sum();
    }
}
