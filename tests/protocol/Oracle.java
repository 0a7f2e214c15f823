import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Scanner;
import java.util.StringJoiner;
import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RefreshRetriableException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/** Kafka's own classes, asked by lines on stdin: one answer a line on stdout. See oracle.py. */
class Oracle {
    static final String MESSAGES = "org.apache.kafka.common.message.";
    static final String REQUESTS = "org.apache.kafka.common.requests.";

    public static void main(String[] args) {
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            String[] question = questions.nextLine().split(" ", -1);
            System.out.println(answer(question));
            System.out.flush();
        }
    }

    static String answer(String[] question) {
        try {
            return switch (question[0]) {
                case "rewrite" -> rewrite(question[1], Short.parseShort(question[2]), question[3]);
                case "json" -> json(question[1], Short.parseShort(question[2]), question[3]);
                case "headers" -> headers(Short.parseShort(question[1]), Short.parseShort(question[2]));
                case "errors" -> errors();
                case "constant" -> constant(question[1], question[2]);
                default -> "error: no such question";
            };
        } catch (InvocationTargetException e) {
            return "error: " + e.getCause();
        } catch (Exception e) {
            return "error: " + e;
        }
    }

    /** The messages of requests and responses are suffixed, others are not. */
    static String className(String name) {
        return MESSAGES + name + (name.startsWith("ConsumerProtocol") ? "" : "Data");
    }

    static Message read(String name, short version, String hex) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        Object message = Class.forName(className(name)).getDeclaredConstructor().newInstance();
        ((Message) message).read(new ByteBufferAccessor(bytes), version);
        if (bytes.hasRemaining()) throw new IllegalArgumentException(bytes.remaining() + " bytes left over");
        return (Message) message;
    }

    static String rewrite(String name, short version, String hex) throws Exception {
        ByteBuffer out = MessageUtil.toByteBufferAccessor(read(name, version, hex), version).buffer();
        byte[] bytes = new byte[out.remaining()];
        out.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static String json(String name, short version, String hex) throws Exception {
        Message message = read(name, version, hex);
        return Class.forName(className(name) + "JsonConverter")
            .getMethod("write", message.getClass(), short.class)
            .invoke(null, message, version).toString();
    }

    static String headers(short key, short version) {
        ApiMessageType type = ApiMessageType.fromApiKey(key);
        return type.requestHeaderVersion(version) + " " + type.responseHeaderVersion(version);
    }

    /** A number that a class of Kafka's requests keeps. */
    static String constant(String name, String constant) throws Exception {
        Field field = Class.forName(REQUESTS + name).getDeclaredField(constant);
        field.setAccessible(true);
        return field.get(null).toString();
    }

    static String errors() {
        StringJoiner rows = new StringJoiner(" ");
        for (Errors error : Errors.values()) rows.add(error.code() + ":" + error + ":" + remedy(error.exception()));
        return rows.toString();
    }

    static String remedy(Exception e) {
        if (e instanceof InvalidMetadataException) return "REFRESH_METADATA";
        if (e instanceof RefreshRetriableException) return "FIND_COORDINATOR";
        return e instanceof RetriableException ? "RETRY" : "NONE";
    }
}
