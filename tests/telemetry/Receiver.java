import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetryContext;
import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;

/**
 * A broker's receiver of client metrics, which appends each push as a line to a file: client id,
 * client instance id, whether it is the last, the push interval, and the metrics as Kafka's own
 * classes read and write them.
 */
public class Receiver implements MetricsReporter, ClientTelemetryExporterProvider, ClientTelemetryExporter {
    private final Path file = Path.of(System.getProperty("telemetry.file"));

    @Override
    public ClientTelemetryExporter clientTelemetryExporter() {
        return this;
    }

    @Override
    public synchronized void exportMetrics(ClientTelemetryContext context, ClientTelemetryPayload payload) {
        byte[] metrics;
        try {
            metrics = MetricsData.parseFrom(payload.data()).toByteArray();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        AuthorizableRequestContext request = context.authorizableRequestContext();
        String line = String.join(" ",
            request.clientId(),
            payload.clientInstanceId().toString(),
            Boolean.toString(payload.isTerminating()),
            Integer.toString(context.pushIntervalMs()),
            payload.contentType(),
            Base64.getEncoder().encodeToString(metrics));
        try {
            Files.writeString(file, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}

    @Override
    public void configure(Map<String, ?> configs) {}
}
