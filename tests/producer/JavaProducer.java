import java.util.*;
import java.util.concurrent.Future;
import java.util.stream.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka's own producers, by their names: a line of what to do with one of them, a line of what came of it. */
class JavaProducer {
    static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();

    public static void main(String[] args) {
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ");
            try {
                System.out.println(answer(question));
            } catch (Exception e) {
                Throwable cause = e.getCause() == null ? e : e.getCause();
                System.out.println("error " + e.getClass().getSimpleName() + " " + cause.getClass().getSimpleName());
            }
            System.out.flush();
        }
        PRODUCERS.values().forEach(producer -> producer.close(java.time.Duration.ZERO));
    }

    static String answer(String[] question) throws Exception {
        KafkaProducer<byte[], byte[]> producer = PRODUCERS.get(question[1]);
        switch (question[0]) {
            case "new" -> PRODUCERS.put(question[1], made(question));
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "close" -> PRODUCERS.remove(question[1]).close();
            case "send" -> {
                return sent(producer, question[2], List.of(question[3].split(",")));
            }
            default -> throw new IllegalArgumentException(question[0]);
        }
        return "done";
    }

    /** `new NAME name=value ...` */
    static KafkaProducer<byte[], byte[]> made(String[] question) {
        Map<String, Object> config = Arrays.stream(question).skip(2).map(each -> each.split("=", 2))
            .collect(Collectors.toMap(each -> each[0], each -> each[1]));
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** `send NAME TOPIC KEY,...`, keys in hexadecimal, each the value, too: the partition of each. */
    static String sent(KafkaProducer<byte[], byte[]> producer, String topic, List<String> keys) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String key : keys) {
            byte[] bytes = HexFormat.of().parseHex(key);
            sent.add(producer.send(new ProducerRecord<>(topic, bytes, bytes)));
        }
        producer.flush();
        StringJoiner partitions = new StringJoiner(" ");
        for (Future<RecordMetadata> each : sent) partitions.add(Integer.toString(each.get().partition()));
        return partitions.toString();
    }
}
