import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;

/** The settings of Kafka's own clients and their defaults, a line each. See test_kafka_settings.py. */
class ConfigNames {
    public static void main(String[] args) {
        print("consumer", ConsumerConfig.configDef());
        print("producer", ProducerConfig.configDef());
    }

    static void print(String client, ConfigDef settings) {
        Map<String, Object> defaults = settings.defaultValues();
        for (String name : settings.names()) System.out.println(client + " " + name + "=" + defaults.get(name));
    }
}
