import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;

/** Answers one line for each line of stdin; fields are separated by tabs, and what is not printable is \\uXXXX. */
public class UrlOracle {

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] fields = line.split("\t", -1);
      for (int i = 0; i < fields.length; i++) fields[i] = read(fields[i]);
      out.println(answer(args[0], fields));
    }
    out.flush();
  }

  private static String answer(String question, String[] f) {
    switch (question) {
      case "url":
        return attempt(() -> {
          URL url = new URL(f[0]);
          return String.join("\t", write(url.getProtocol()), write(url.getUserInfo()), write(url.getHost()),
              String.valueOf(url.getPort()), write(url.getAuthority()), write(url.getPath()), write(url.getQuery()),
              write(url.getRef()), write(url.toString()));
        });
      case "resolve":
        return attempt(() -> write(new URL(new URL(f[0]), f[1]).toString()));
      case "uri":
        return attempt(() -> write(new URI(f[0]).getHost()) + "\t" + write(new URI(f[0]).getRawPath()));
      case "find":
        return attempt(() -> String.valueOf(Pattern.compile(f[0]).matcher(f[1]).find()));
      default:
        throw new IllegalArgumentException(question);
    }
  }

  private static String attempt(Callable<String> work) {
    try {
      return work.call();
    } catch (Exception e) {
      return "!";
    }
  }

  private static String write(String text) {
    if (text == null) return "!null";
    StringBuilder result = new StringBuilder();
    for (char c : text.toCharArray()) {
      if (c > 32 && c < 127 && c != '\\') result.append(c);
      else result.append(String.format("\\u%04x", (int) c));
    }
    return result.toString();
  }

  private static String read(String text) {
    StringBuilder result = new StringBuilder();
    for (int i = 0; i < text.length(); i++) {
      if (text.charAt(i) == '\\') {
        result.append((char) Integer.parseInt(text.substring(i + 2, i + 6), 16));
        i += 5;
      } else {
        result.append(text.charAt(i));
      }
    }
    return result.toString();
  }
}
