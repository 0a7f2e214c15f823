import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.internals.FetchMetricsRegistry;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** What Kafka's own consumer has, a line for each question. See test_java_consumer.py. */
class JavaConsumer {
    static final List<Class<?>> CLASSES = List.of(
        Consumer.class, KafkaConsumer.class, ConsumerRecords.class, ConsumerRecord.class,
        ConsumerRebalanceListener.class, OffsetAndMetadata.class, OffsetAndTimestamp.class,
        ConsumerGroupMetadata.class);
    static final Set<String> OF_ANY_OBJECT = Set.of("equals", "hashCode", "toString");

    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String question; (question = questions.readLine()) != null; ) {
            Stream<String> answer = switch (question) {
                case "methods" -> CLASSES.stream().flatMap(JavaConsumer::methods);
                case "settings" -> settings();
                case "metrics" -> metrics();
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

    static Stream<String> settings() {
        ConfigDef settings = ConsumerConfig.configDef();
        return settings.configKeys().values().stream().map(key -> key.name + "=" + text(key.defaultValue));
    }

    static String text(Object value) {
        if (value == null || value == ConfigDef.NO_DEFAULT_VALUE) return "";
        if (value instanceof Class<?> type) return type.getName();
        if (value instanceof List<?> list) return list.stream().map(JavaConsumer::text).collect(Collectors.joining(","));
        return value.toString();
    }

    /** Names, of one that was never connected; those of fetches come with the first of them. */
    static Stream<String> metrics() {
        Map<String, Object> config = Map.of("bootstrap.servers", "localhost:1", "group.id", "g");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            return Stream.concat(
                consumer.metrics().keySet().stream().map(name -> name.name()),
                new FetchMetricsRegistry().getAllTemplates().stream().map(template -> template.name())
            ).toList().stream();
        }
    }
}
