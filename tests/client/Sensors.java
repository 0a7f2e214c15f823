// Kafka's statistics over time: a line with a configuration and events in, the figures out.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.StringJoiner;
import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.stats.Avg;
import org.apache.kafka.common.metrics.stats.Max;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.WindowedCount;

public class Sensors {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(figures(line.split(" ")));
        }
    }

    // samples, window in ms, and events: "125:7" is the value 7 at 125 ms, "125" a measurement.
    private static String figures(String[] words) {
        var config = new MetricConfig().samples(Integer.parseInt(words[0]))
            .timeWindow(Long.parseLong(words[1]), java.util.concurrent.TimeUnit.MILLISECONDS);
        var stats = new MeasurableStat[] {
            new Rate(), new Rate(new WindowedCount()), new Avg(), new Max()
        };
        var found = new StringJoiner(" ");
        for (int place = 2; place < words.length; place++) {
            String[] event = words[place].split(":");
            long atMs = Long.parseLong(event[0]);
            for (MeasurableStat stat : stats) {
                if (event.length == 2) {
                    stat.record(config, Double.parseDouble(event[1]), atMs);
                } else {
                    found.add(Double.toString(stat.measure(config, atMs)));
                }
            }
        }
        return found.toString();
    }
}
