import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordDeserializationException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.*;

/** Kafka's consumer with deserializers that throw, a run for each line. See test_bad_records_kafka.py. */
class BadRecords {
    static final long PATIENCE_MS = 60_000;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(new PrintStream(OutputStream.nullOutputStream())); // Kafka logs its errors there.
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = questions.readLine()) != null; ) {
            String[] question = line.split(" ");
            answers.println(question[0].equals("consume")
                ? consume(question[1], question[2], question[3], question[4], question[5],
                    Integer.parseInt(question[6]), Integer.parseInt(question[7]))
                : deserialize(question[1], HexFormat.of().parseHex(question.length > 2 ? question[2] : "")));
        }
    }

    static String refusing(String topic, byte[] data) {
        String text = new String(data, StandardCharsets.UTF_8);
        if (text.startsWith("bad")) throw new IllegalArgumentException("bad text");
        return text;
    }

    /**
     * Reads until `count` records and `bad` errors came. An error makes it seek to the next offset, or pause the partition.
     * Prints the records, the errors with the position then, and what is committed after close.
     */
    static String consume(String servers, String topic, String group, String then, String most, int count, int bad) {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", servers, "group.id", group, "auto.offset.reset", "earliest",
            "max.poll.records", most);
        List<String> records = new ArrayList<>(), errors = new ArrayList<>();
        long until = System.currentTimeMillis() + PATIENCE_MS;
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(config, BadRecords::refusing, BadRecords::refusing)) {
            consumer.subscribe(List.of(topic));
            while (records.size() < count || errors.size() < bad) {
                if (System.currentTimeMillis() > until) return "error: " + records + errors;
                try {
                    for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(500)))
                        records.add(each.partition() + ":" + each.offset() + "=" + each.value());
                } catch (RecordDeserializationException failed) {
                    TopicPartition where = failed.topicPartition();
                    errors.add(where.partition() + ":" + failed.offset() + " at " + consumer.position(where)
                        + " " + failed.origin().toString().toLowerCase());
                    if (then.equals("seek")) consumer.seek(where, failed.offset() + 1);
                    else consumer.pause(List.of(where));
                }
            }
        }
        return sorted(records) + ";" + sorted(errors) + ";" + committed(servers, topic, group);
    }

    static String committed(String servers, String topic, String group) {
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", group);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            Set<TopicPartition> all = consumer.partitionsFor(topic).stream()
                .map(each -> new TopicPartition(topic, each.partition())).collect(Collectors.toSet());
            return sorted(consumer.committed(all).entrySet().stream().filter(each -> each.getValue() != null)
                .map(each -> each.getKey().partition() + "=" + each.getValue().offset()).toList());
        }
    }

    static String sorted(List<String> texts) {
        return texts.stream().sorted().collect(Collectors.joining(","));
    }

    /** What a deserializer of Kafka's makes of bytes, or that it throws. */
    static String deserialize(String name, byte[] data) throws Exception {
        Deserializer<?> made = (Deserializer<?>) Class.forName(
            "org.apache.kafka.common.serialization." + name + "Deserializer").getDeclaredConstructor().newInstance();
        try {
            return "made " + made.deserialize("t", data);
        } catch (SerializationException refused) {
            return "refused";
        }
    }
}
