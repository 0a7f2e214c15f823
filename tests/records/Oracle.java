import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Scanner;
import java.util.Set;
import java.util.StringJoiner;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.AbstractRecords;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;

/** Kafka's own record classes, asked by lines on stdin: one answer a line on stdout. See oracle.py. */
class Oracle {
    public static void main(String[] args) {
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            System.out.println(answer(questions.nextLine().split(" ", -1)));
            System.out.flush();
        }
    }

    static String answer(String[] question) {
        try {
            return switch (question[0]) {
                case "decode" -> decode(question[1]);
                case "encode" -> encode(question);
                case "marker" -> marker(question);
                case "levels" -> levels(CompressionType.forName(question[1]));
                case "size" -> size(question[1]);
                case "compact" -> compact(question[1], Set.of(question[2].split(",")));
                default -> "error: no such question";
            };
        } catch (Exception e) {
            return "error: " + e;
        }
    }

    /** Every batch as its facts and its records, in the words of `encode`. */
    static String decode(String hex) {
        StringJoiner all = new StringJoiner(" | ");
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(hex)));
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            StringJoiner one = new StringJoiner(" ");
            one.add(batch.compressionType().name).add(batch.timestampType().name).add("" + batch.baseOffset());
            one.add("" + batch.maxTimestamp()).add("" + batch.producerId()).add("" + batch.producerEpoch());
            one.add("" + batch.baseSequence()).add("" + batch.isTransactional()).add("" + batch.partitionLeaderEpoch());
            one.add("" + batch.isControlBatch()).add("" + batch.lastOffset()).add("" + batch.deleteHorizonMs().orElse(-1));
            for (Record record : batch) {
                record.ensureValid();
                StringJoiner headers = new StringJoiner(",");
                for (Header header : record.headers()) headers.add(hex(header.key().getBytes()) + "=" + hex(header.value()));
                one.add(record.offset() + ":" + record.timestamp() + ":" + hex(record.key()) + ":" + hex(record.value()) + ":" + headers);
            }
            all.add(one.toString());
        }
        return all.toString();
    }

    /** encode codec timestampType baseOffset appendMs producerId epoch sequence transactional leaderEpoch record... */
    static String encode(String[] question) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024), RecordBatch.MAGIC_VALUE_V2, Compression.of(question[1]).build(),
            TimestampType.forName(question[2]), Long.parseLong(question[3]), Long.parseLong(question[4]),
            Long.parseLong(question[5]), Short.parseShort(question[6]), Integer.parseInt(question[7]),
            Boolean.parseBoolean(question[8]), Integer.parseInt(question[9]));
        for (int i = 10; i < question.length; i++) {
            String[] record = question[i].split(":", -1);
            builder.appendWithOffset(Long.parseLong(record[0]), Long.parseLong(record[1]), bytes(record[2]), bytes(record[3]), headers(record[4]));
        }
        return hex(builder.build().buffer());
    }

    /** The least, the most and the default level of a compression. */
    static String levels(CompressionType type) {
        return type.minLevel() + " " + type.maxLevel() + " " + type.defaultLevel();
    }

    /** What the producer holds against max.request.size, of one record in the words of `encode`. */
    static String size(String text) {
        String[] record = text.split(":", -1);
        return "" + AbstractRecords.estimateSizeInBytesUpperBound(
            RecordBatch.MAGIC_VALUE_V2, CompressionType.NONE, bytes(record[2]), bytes(record[3]), headers(record[4]));
    }

    static Header[] headers(String text) {
        List<Header> headers = new ArrayList<>();
        for (String header : text.isEmpty() ? new String[0] : text.split(",")) {
            String[] parts = header.split("=", -1);
            headers.add(new RecordHeader(new String(bytes(parts[0])), bytes(parts[1])));
        }
        return headers.toArray(new Header[0]);
    }

    /** marker ABORT|COMMIT baseOffset timestamp leaderEpoch producerId epoch coordinatorEpoch */
    static String marker(String[] question) {
        var end = new EndTransactionMarker(ControlRecordType.valueOf(question[1]), Integer.parseInt(question[7]));
        return hex(MemoryRecords.withEndTransactionMarker(
            Long.parseLong(question[2]), Long.parseLong(question[3]), Integer.parseInt(question[4]),
            Long.parseLong(question[5]), Short.parseShort(question[6]), end).buffer());
    }

    /** What the log cleaner leaves where only the records at these offsets are kept, and every batch. */
    static String compact(String hex, Set<String> kept) {
        var filter = new MemoryRecords.RecordFilter(5000, 1000) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return kept.contains("" + record.offset());
            }
        };
        ByteBuffer out = ByteBuffer.allocate(1 << 20);
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(hex)));
        return hex(records.filterTo(filter, out, BufferSupplier.NO_CACHING, Integer.MAX_VALUE).outputBuffer().flip());
    }

    static byte[] bytes(String hex) {
        return hex.equals("-") ? null : HexFormat.of().parseHex(hex);
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) return "-";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return hex(bytes);
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "-" : HexFormat.of().formatHex(bytes);
    }
}
