import com.sun.tools.attach.VirtualMachine;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Scanner;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** What the sockets of a broker's listener have seen: "listener metric" in, a number out. */
public class SocketMetrics {
    public static void main(String[] arguments) throws Exception {
        VirtualMachine broker = VirtualMachine.attach(arguments[0]);
        JMXServiceURL where = new JMXServiceURL(broker.startLocalManagementAgent());
        broker.detach();
        try (JMXConnector connector = JMXConnectorFactory.connect(where)) {
            MBeanServerConnection beans = connector.getMBeanServerConnection();
            BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
            for (String line = questions.readLine(); line != null; line = questions.readLine()) {
                Scanner words = new Scanner(line);
                System.out.println(sum(beans, words.next(), words.next()));
            }
        }
    }

    /** Over all of the broker's threads for this listener. */
    private static long sum(MBeanServerConnection beans, String listener, String metric) throws Exception {
        double total = 0;
        String pattern = "kafka.server:type=socket-server-metrics,listener=" + listener + ",networkProcessor=*";
        for (ObjectName name : beans.queryNames(new ObjectName(pattern), null)) {
            total += ((Number) beans.getAttribute(name, metric)).doubleValue();
        }
        return Math.round(total);
    }
}
