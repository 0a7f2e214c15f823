import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

/** What pipeline.py does, by Kafka's own clients: `servers group source target transactionalId`. */
class Pipeline {
    static final int FENCED = 3;

    public static void main(String[] args) {
        Map<String, Object> consuming = Map.of(
            "bootstrap.servers", args[0], "group.id", args[1], "auto.offset.reset", "earliest",
            "enable.auto.commit", false, "isolation.level", "read_committed",
            "session.timeout.ms", 3000, "heartbeat.interval.ms", 300, "max.poll.records", 20);
        Map<String, Object> producing = Map.of(
            "bootstrap.servers", args[0], "transactional.id", args[4], "transaction.timeout.ms", 10000, "linger.ms", 0);
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(consuming, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(producing, new ByteArraySerializer(), new ByteArraySerializer());
        consumer.subscribe(List.of(args[2]));
        try {
            producer.initTransactions();
            while (true) step(consumer, producer, args[3]);
        } catch (KafkaException fatal) {
            System.err.println(fatal);
            Runtime.getRuntime().halt(FENCED);
        }
    }

    static void step(KafkaConsumer<byte[], byte[]> consumer, KafkaProducer<byte[], byte[]> producer, String target) {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
        if (records.isEmpty()) return;
        producer.beginTransaction();
        try {
            for (ConsumerRecord<byte[], byte[]> each : records)
                producer.send(new ProducerRecord<>(target, each.key(), each.value()));
            producer.sendOffsetsToTransaction(records.nextOffsets(), consumer.groupMetadata());
            producer.commitTransaction();
        } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException fatal) {
            throw fatal;
        } catch (KafkaException error) {
            producer.abortTransaction();
            Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
            committed.forEach((where, offset) -> consumer.seek(where, offset == null ? 0 : offset.offset()));
        }
    }
}
