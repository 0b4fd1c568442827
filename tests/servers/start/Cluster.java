import RUNNER_CLASS;

/** One node of Elasticsearch or OpenSearch on loopback: folder, port. Ends with its standard input. */
public class Cluster {
  public static void main(String[] args) throws Exception {
    RUNNER_NAME runner = new RUNNER_NAME();
    runner
        .onBuild(
            (number, settings) -> {
              settings.put("http.port", args[1]);
              settings.put("network.host", "127.0.0.1");
              settings.put("discovery.type", "single-node");
              settings.put("cluster.routing.allocation.disk.threshold_enabled", false);
            })
        .build(RUNNER_NAME.newConfigs().basePath(args[0]).numOfNode(1));
    System.out.println("READY");
    while (System.in.read() >= 0) {}
    runner.close();
    System.exit(0);
  }
}
