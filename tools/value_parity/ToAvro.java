import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Iterator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.avro.Schema;
import org.apache.spark.sql.avro.AvroSerializer;
import org.apache.spark.sql.avro.CatalystDataToAvro;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;

/**
 * The expression of Spark's `to_avro`. A question is a type's JSON, a schema, and perhaps a stream
 * of Arrow with one column; an answer is `refused` or the bytes of each row. See writing.py.
 */
class ToAvro {
    public static void main(String[] args) throws Exception {
        // Spark warns of each schema without null.
        System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        BufferedReader questions = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        for (String line; (line = questions.readLine()) != null; ) {
            String[] question = line.split("\t", -1);
            System.out.println(answer(question[0], question[1], question[2]));
        }
    }

    static String answer(String typeJson, String schema, String arrow) throws Exception {
        DataType type = DataType.fromJson(typeJson);
        try {
            new AvroSerializer(type, new Schema.Parser().parse(schema), true);
        } catch (Exception failure) {
            return "refused\t" + text(failure);
        }
        StringBuilder found = new StringBuilder("fits");
        if (arrow.isEmpty()) return found.toString();
        byte[] bytes = Base64.getDecoder().decode(arrow);
        try (RootAllocator memory = new RootAllocator();
                ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(bytes), memory)) {
            reader.loadNextBatch();
            var root = reader.getVectorSchemaRoot();
            ColumnVector[] columns = {new ArrowColumnVector(root.getVector(0))};
            Iterator<InternalRow> rows = new ColumnarBatch(columns, root.getRowCount()).rowIterator();
            var expression = expression(type, schema);
            while (rows.hasNext()) {
                InternalRow row = rows.next();
                try {
                    byte[] value = (byte[]) expression.eval(row);
                    found.append(value == null ? "\tnull" : "\tx" + HexFormat.of().formatHex(value));
                } catch (Exception failure) {
                    found.append("\t!").append(text(failure));
                    // The failed one keeps half of a value.
                    expression = expression(type, schema);
                }
            }
        }
        return found.toString();
    }

    static CatalystDataToAvro expression(DataType type, String schema) {
        return new CatalystDataToAvro(new BoundReference(0, type, true), Option.apply(schema));
    }

    static String text(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null) cause = cause.getCause();
        return (cause.getClass().getSimpleName() + ": " + cause.getMessage()).replaceAll("\\s+", " ");
    }
}
