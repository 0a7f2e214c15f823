import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Kafka's own consumer as a member: told by lines, heard by lines, which member.py describes. */
class JavaMember implements ConsumerRebalanceListener {
    interface Act { void run() throws Exception; }

    static final Duration POLL = Duration.ofMillis(100);

    final LinkedBlockingQueue<String> lines = new LinkedBlockingQueue<>();
    final Map<String, Object> settings = new HashMap<>(Map.of("max.poll.records", "500"));
    final Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
    String[] reads = {};
    long everyMs = 0, dueMs = 0;
    boolean isOpen = true;
    KafkaConsumer<byte[], byte[]> consumer;

    public static void main(String[] args) throws Exception {
        new JavaMember().live();
    }

    void live() throws Exception {
        Thread listening = new Thread(this::listen);
        listening.setDaemon(true);
        listening.start();
        System.out.println("ready");
        while (!told(lines.take())) { }
        timed("start", this::start);
        while (isOpen) {
            timed("poll", this::poll);
            if (everyMs > 0 && !next.isEmpty() && System.currentTimeMillis() >= dueMs) {
                timed("commit", () -> consumer.commitSync(new HashMap<>(next)));
                dueMs = System.currentTimeMillis() + everyMs;
            }
            String line = lines.poll();
            if (line != null) told(line);
        }
    }

    void listen() {
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line; (line = input.readLine()) != null; ) lines.add(line);
        } catch (java.io.IOException error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(1);
    }

    boolean told(String line) {
        String[] words = line.trim().split(" ");
        switch (words[0]) {
            case "set" -> settings.put(words[1], words[2]);
            case "every" -> everyMs = Long.parseLong(words[1]);
            case "commit" -> {
                var one = Map.of(partition(words[1]), new OffsetAndMetadata(Long.parseLong(words[2])));
                timed("ask", () -> consumer.commitSync(one, Duration.ofMillis(Long.parseLong(words[3]))));
            }
            case "close" -> {
                timed("close", () -> consumer.close());
                isOpen = false;
            }
            case "begin" -> { return true; }
            default -> reads = words;
        }
        return false;
    }

    void timed(String what, Act act) {
        long began = System.nanoTime();
        System.out.println("> " + what + " " + System.currentTimeMillis());
        String error = "-";
        try {
            act.run();
        } catch (Exception raised) {
            error = raised.toString().replace("\n", " ");
        }
        long tookMs = (System.nanoTime() - began) / 1_000_000;
        System.out.println("< " + what + " " + System.currentTimeMillis() + " " + tookMs + " " + error);
    }

    void start() {
        var bytes = new ByteArrayDeserializer();
        consumer = new KafkaConsumer<>(settings, bytes, bytes);
        List<String> names = List.of(reads).subList(1, reads.length);
        switch (reads[0]) {
            case "assign" -> consumer.assign(names.stream().map(JavaMember::partition).toList());
            case "match" -> consumer.subscribe(Pattern.compile(names.get(0)), this);
            default -> consumer.subscribe(names, this);
        }
    }

    void poll() {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
        for (TopicPartition where : records.partitions()) {
            var found = records.records(where);
            long first = found.get(0).offset(), after = first;
            for (var each : found) {
                if (each.offset() != after) throw new IllegalStateException(where + " has no " + after);
                after++;
            }
            next.put(where, new OffsetAndMetadata(after));
            System.out.println("read " + System.currentTimeMillis() + " " + text(where) + " " + first + " " + after);
        }
    }

    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        owns(consumer.groupMetadata().generationId(), consumer.assignment());
    }

    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        Set<TopicPartition> left = new HashSet<>(consumer.assignment());
        left.removeAll(partitions);
        owns(-1, left);
    }

    void owns(int generation, Set<TopicPartition> owned) {
        next.keySet().retainAll(owned);
        String names = owned.stream().map(each -> " " + text(each)).sorted().collect(Collectors.joining());
        System.out.println("owns " + System.currentTimeMillis() + " " + generation + names);
    }

    static TopicPartition partition(String text) {
        int at = text.lastIndexOf(':');
        return new TopicPartition(text.substring(0, at), Integer.parseInt(text.substring(at + 1)));
    }

    static String text(TopicPartition where) {
        return where.topic() + ":" + where.partition();
    }
}
