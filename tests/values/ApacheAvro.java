import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.Encoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

/** Apache Avro's library, a line for each question. Values are in Avro's JSON. See test_avro_java.py. */
class ApacheAvro {
    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        for (String line; (line = questions.readLine()) != null; ) {
            String[] question = line.split("\t", -1);
            try {
                System.out.println(switch (question[0]) {
                    case "write" -> written(schema(question[1]), question[2]);
                    case "read" -> read(schema(question[1]), schema(question[2]), question[3]);
                    default -> "error";
                });
            } catch (Exception | StackOverflowError failure) {
                System.out.println("error " + String.valueOf(failure).replaceAll("\\s+", " "));
            }
        }
    }

    static Schema schema(String text) {
        return new Schema.Parser().parse(text);
    }

    /** The bytes of a value in one block, and in blocks with their sizes. */
    static String written(Schema schema, String json) throws Exception {
        Object value = new GenericDatumReader<Object>(schema)
            .read(null, DecoderFactory.get().jsonDecoder(schema, json));
        var plain = new ByteArrayOutputStream();
        write(schema, value, EncoderFactory.get().binaryEncoder(plain, null));
        var blocks = new ByteArrayOutputStream();
        EncoderFactory small = new EncoderFactory().configureBlockSize(64);
        write(schema, value, small.blockingBinaryEncoder(blocks, null));
        HexFormat hex = HexFormat.of();
        return hex.formatHex(plain.toByteArray()) + "\t" + hex.formatHex(blocks.toByteArray());
    }

    /** The value of all of these bytes, as the reader's schema has it. */
    static String read(Schema writer, Schema reader, String hex) throws Exception {
        BinaryDecoder bytes = DecoderFactory.get().binaryDecoder(HexFormat.of().parseHex(hex), null);
        Object value = new GenericDatumReader<Object>(writer, reader).read(null, bytes);
        if (!bytes.isEnd()) throw new IllegalStateException("bytes after the value");
        var json = new ByteArrayOutputStream();
        JsonEncoder encoder = EncoderFactory.get().jsonEncoder(reader, json, false);
        write(reader, value, encoder);
        return json.toString(StandardCharsets.UTF_8).replaceAll("[\\r\\n]", " ");
    }

    static void write(Schema schema, Object value, Encoder encoder) throws Exception {
        new GenericDatumWriter<Object>(schema).write(value, encoder);
        encoder.flush();
    }
}
