import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.telemetry.internals.MetricNamingStrategy;
import org.apache.kafka.common.telemetry.internals.TelemetryMetricNamingConvention;

/** Prints the names under which Kafka's own clients push their metrics, for each line of input. */
public class JavaNames {
    public static void main(String[] arguments) {
        MetricNamingStrategy<MetricName> names =
            TelemetryMetricNamingConvention.getClientTelemetryMetricNamingStrategy("org.apache.kafka");
        String servers = "127.0.0.1:1";
        StringBuilder found = new StringBuilder();
        try (var consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", servers, "group.id", "g"),
                new ByteArrayDeserializer(), new ByteArrayDeserializer());
             var producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", servers), new ByteArraySerializer(), new ByteArraySerializer())) {
            consumer.metrics().keySet().forEach(each -> found.append(names.metricKey(each).name()).append(' '));
            producer.metrics().keySet().forEach(each -> found.append(names.metricKey(each).name()).append(' '));
        }
        System.out.println(found.toString().strip());
    }
}
