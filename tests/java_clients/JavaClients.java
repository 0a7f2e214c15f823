import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.internals.FetchMetricsRegistry;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.*;

/** What Kafka's own clients have, a line for each question. See test_java_clients.py. */
class JavaClients {
    static final Map<String, List<Class<?>>> CLASSES = Map.of(
        "consumer", List.of(
            Consumer.class, KafkaConsumer.class, ConsumerRecords.class, ConsumerRecord.class,
            ConsumerRebalanceListener.class, OffsetAndMetadata.class, OffsetAndTimestamp.class,
            ConsumerGroupMetadata.class),
        "producer", List.of(
            Producer.class, KafkaProducer.class, ProducerRecord.class, RecordMetadata.class, Callback.class));
    static final Set<String> OF_ANY_OBJECT = Set.of("equals", "hashCode", "toString");

    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = questions.readLine()) != null; ) {
            String[] question = line.split(" ", 2);
            String about = question.length > 1 ? question[1] : "";
            Stream<String> answer = switch (question[0]) {
                case "methods" -> CLASSES.get(about).stream().flatMap(JavaClients::methods);
                case "settings" -> settings(about.equals("consumer") ? ConsumerConfig.configDef() : ProducerConfig.configDef());
                case "metrics" -> about.equals("consumer") ? consumerMetrics() : producerMetrics();
                case "produces" -> produces(about);
                case "retriable" -> Stream.of(Boolean.toString(
                    RetriableException.class.isAssignableFrom(Class.forName("org.apache.kafka." + about))));
                default -> Stream.of("error");
            };
            System.out.println(answer.distinct().sorted().collect(Collectors.joining(";")));
        }
    }

    /** Class, name and types of parameters, with spaces between them, of what is not deprecated. */
    static Stream<String> methods(Class<?> of) {
        return Arrays.stream(of.getDeclaredMethods())
            .filter(m -> Modifier.isPublic(m.getModifiers()) && !m.isSynthetic())
            .filter(m -> !m.isAnnotationPresent(Deprecated.class) && !OF_ANY_OBJECT.contains(m.getName()))
            .map(m -> of.getSimpleName() + " " + m.getName() + Arrays.stream(m.getParameterTypes())
                .map(type -> " " + type.getSimpleName()).collect(Collectors.joining()));
    }

    static Stream<String> settings(ConfigDef settings) {
        return settings.configKeys().values().stream().map(key -> key.name + "=" + text(key.defaultValue));
    }

    static String text(Object value) {
        if (value == null || value == ConfigDef.NO_DEFAULT_VALUE) return "";
        if (value instanceof Class<?> type) return type.getName();
        if (value instanceof List<?> list) return list.stream().map(JavaClients::text).collect(Collectors.joining(","));
        return value.toString();
    }

    /** Names, of one that was never connected; those of fetches come with the first of them. */
    static Stream<String> consumerMetrics() {
        Map<String, Object> config = Map.of("bootstrap.servers", "localhost:1", "group.id", "g");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            return Stream.concat(
                consumer.metrics().keySet().stream().map(name -> name.name()),
                new FetchMetricsRegistry().getAllTemplates().stream().map(template -> template.name())
            ).toList().stream();
        }
    }

    /** Names, of one that was never connected; those of requests come with the first of them. */
    static Stream<String> producerMetrics() {
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
            return producer.metrics().keySet().stream().map(name -> name.name()).toList().stream();
        }
    }

    /** Whether a producer with these settings, name=value with commas between them, is idempotent; or it is refused. */
    static Stream<String> produces(String settings) {
        Map<String, Object> config = new HashMap<>();
        Arrays.stream(settings.split(",")).filter(each -> !each.isEmpty()).forEach(each -> {
            String[] parts = each.split("=", 2);
            config.put(parts[0], parts[1]);
        });
        try (KafkaProducer<byte[], byte[]> producer = producer(config)) {
            config.putAll(Map.of(
                "bootstrap.servers", "localhost:1",
                "key.serializer", ByteArraySerializer.class, "value.serializer", ByteArraySerializer.class));
            return Stream.of(new ProducerConfig(config).getBoolean("enable.idempotence").toString());
        } catch (KafkaException refused) {
            return Stream.of("refused");
        }
    }

    static KafkaProducer<byte[], byte[]> producer(Map<String, Object> config) {
        Map<String, Object> all = new HashMap<>(config);
        all.put("bootstrap.servers", "localhost:1");
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }
}
