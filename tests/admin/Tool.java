import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/** Kafka's own kafka-consumer-groups: its arguments in a line, what it printed as hex. See tool.py. */
class Tool {
    public static void main(String[] args) {
        PrintStream answers = System.out;
        Exit.setExitProcedure((status, message) -> { throw new IllegalStateException("exit " + status); });
        Scanner questions = new Scanner(System.in);
        while (questions.hasNextLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true));
            System.setErr(System.out);
            String failure = "";
            try {
                ConsumerGroupCommand.main(questions.nextLine().split("\t"));
            } catch (Throwable e) {
                failure = e.toString();
            }
            String text = printed.toString(StandardCharsets.UTF_8) + failure;
            answers.println(HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8)));
            answers.flush();
        }
    }
}
