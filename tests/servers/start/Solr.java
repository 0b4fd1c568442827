import SOLR_PACKAGE.JettyConfig;
import SOLR_PACKAGE.JettySolrRunner;

/** Solr on loopback: folder, port. Ends with its standard input. */
public class Solr {
  public static void main(String[] args) throws Exception {
    JettyConfig config = JettyConfig.builder().setContext("/solr").setPort(Integer.parseInt(args[1])).build();
    JettySolrRunner runner = new JettySolrRunner(args[0], config);
    runner.start();
    System.out.println("READY");
    while (System.in.read() >= 0) {}
    runner.stop();
    System.exit(0);
  }
}
