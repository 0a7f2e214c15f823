import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** What Kafka's own consumer reads: `bootstrapServers topic partitions isolationLevel`, all records up to the end in one line. */
class ReadTopic {
    static final Duration PATIENCE = Duration.ofSeconds(60);

    public static void main(String[] args) {
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ");
            try {
                System.out.println(read(question[0], question[1], Integer.parseInt(question[2]), question[3]));
            } catch (Exception e) {
                System.out.println("error: " + e);
            }
            System.out.flush();
        }
    }

    static String read(String bootstrapServers, String topic, int partitions, String isolationLevel) {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", bootstrapServers, "auto.offset.reset", "earliest", "check.crcs", true,
            "isolation.level", isolationLevel);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        StringJoiner found = new StringJoiner(" ");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            List<TopicPartition> all = IntStream.range(0, partitions).mapToObj(p -> new TopicPartition(topic, p)).toList();
            consumer.assign(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long end = System.nanoTime() + PATIENCE.toNanos();
            while (all.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                if (System.nanoTime() > end) throw new IllegalStateException("not read within " + PATIENCE);
                consumer.poll(Duration.ofSeconds(1)).forEach(record -> found.add(shown(record)));
            }
        }
        return found.toString();
    }

    static String shown(ConsumerRecord<byte[], byte[]> record) {
        String headers = Arrays.stream(record.headers().toArray())
            .map(header -> hex(header.key().getBytes()) + "=" + hex(header.value())).collect(Collectors.joining(","));
        return Stream.of(record.partition(), record.offset(), record.timestamp(), hex(record.key()), hex(record.value()), headers)
            .map(Object::toString).collect(Collectors.joining(":"));
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "-" : HexFormat.of().formatHex(bytes);
    }
}
