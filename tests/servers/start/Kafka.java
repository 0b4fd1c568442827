import java.util.Properties;
import java.io.FileReader;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;

/** A broker of Kafka: its properties. Ends with its standard input. */
public class Kafka {
  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    try (FileReader file = new FileReader(args[0])) {
      properties.load(file);
    }
    KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(properties, false), Time.SYSTEM);
    server.startup();
    System.out.println("READY");
    while (System.in.read() >= 0) {}
    server.shutdown();
    System.exit(0);
  }
}
