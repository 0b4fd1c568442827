import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import org.apache.tika.io.TikaInputStream;
import org.apache.tika.metadata.Metadata;
import org.apache.tika.metadata.TikaCoreProperties;
import org.apache.tika.parser.AutoDetectParser;
import org.apache.tika.parser.ParseContext;
import org.apache.tika.parser.Parser;
import org.apache.tika.sax.BodyContentHandler;
import org.apache.tika.sax.Link;
import org.apache.tika.sax.LinkContentHandler;
import org.apache.tika.sax.TeeContentHandler;

/** Parses the documents of a list, as Nutch's parse-tika has Tika do it; one answer file for each. */
public final class TikaDocuments {
  public static void main(String[] arguments) throws Exception {
    AutoDetectParser parser = new AutoDetectParser();
    List<String> documents = Files.readAllLines(Paths.get(arguments[0]), StandardCharsets.UTF_8);
    for (int number = 0; number < documents.size(); number++) {
      Path path = Paths.get(documents.get(number));
      Metadata metadata = new Metadata();
      metadata.set(TikaCoreProperties.RESOURCE_NAME_KEY, path.getFileName().toString());
      BodyContentHandler text = new BodyContentHandler(-1);
      LinkContentHandler links = new LinkContentHandler();
      ParseContext context = new ParseContext();
      context.set(Parser.class, parser);
      StringBuilder answer = new StringBuilder();
      long start = System.nanoTime();
      try (InputStream in = TikaInputStream.get(path, metadata)) {
        parser.parse(in, new TeeContentHandler(text, links), metadata, context);
      } catch (Throwable error) {
        line(answer, "error", error.toString());
      }
      line(answer, "seconds", String.valueOf((System.nanoTime() - start) / 1e9));
      line(answer, "title", metadata.get(TikaCoreProperties.TITLE));
      line(answer, "date", metadata.get(TikaCoreProperties.CREATED));
      line(answer, "date", metadata.get(TikaCoreProperties.MODIFIED));
      for (Link link : links.getLinks()) {
        line(answer, "link", link.getUri());
      }
      answer.append("text\n").append(text);
      Path target = Paths.get(arguments[1], number + ".answer");
      Files.write(target, answer.toString().getBytes(StandardCharsets.UTF_8));
    }
  }

  private static void line(StringBuilder answer, String name, String value) {
    if (value != null) {
      answer.append(name).append('\t').append(value.replaceAll("\\s+", " ")).append('\n');
    }
  }
}
