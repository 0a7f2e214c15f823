import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own producer: `topic count setting=value ...` has it write the records of a file, again and again,
 * until there are so many; it answers with the nanoseconds of processor time of this JVM. The file, the only
 * argument, has a record a line: its key, a tab, its value.
 */
class ProduceTopic {
    static final List<byte[]> KEYS = new ArrayList<>(), VALUES = new ArrayList<>();

    public static void main(String[] args) throws IOException {
        for (String line : Files.readAllLines(Path.of(args[0]), StandardCharsets.UTF_8)) {
            String[] cells = line.split("\t");
            KEYS.add(cells[0].getBytes(StandardCharsets.UTF_8));
            VALUES.add(cells[1].getBytes(StandardCharsets.UTF_8));
        }
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ");
            try {
                System.out.println(produce(question));
            } catch (Exception e) {
                System.out.println("error: " + e);
            }
            System.out.flush();
        }
    }

    static long produce(String[] question) throws ExecutionException, InterruptedException {
        Map<String, Object> config = new HashMap<>();
        for (String setting : Arrays.copyOfRange(question, 2, question.length)) {
            String[] cells = setting.split("=", 2);
            config.put(cells[0], cells[1]);
        }
        ByteArraySerializer bytes = new ByteArraySerializer();
        long before = processorTime();
        Exception[] failure = {null};
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, bytes, bytes)) {
            for (int n = 0, count = Integer.parseInt(question[1]); n < count; n++) {
                int at = n % KEYS.size();
                producer.send(new ProducerRecord<>(question[0], KEYS.get(at), VALUES.get(at)), (where, error) -> {
                    if (error != null) failure[0] = error;
                });
            }
        }
        if (failure[0] != null) throw new ExecutionException(failure[0]);
        return processorTime() - before;
    }

    static long processorTime() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
