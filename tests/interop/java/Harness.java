import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.MapFile;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.WritableComparable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.util.ReflectionUtils;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * The other side of minutch's interoperability tests: does with Hadoop's and Nutch's own classes what a test asks for.
 *
 * <p>Each line of standard input is one request, its words separated by tabs; each gets one line of answer on the
 * stream that was standard output: {@code ok}, {@code exit CODE} or {@code failed EXCEPTION}. Records travel in text
 * files, a line {@code key value} in Base64 for each.
 */
public class Harness {

  private interface Action {
    String run(String[] words) throws Exception;
  }

  private static final Map<String, Action> ACTIONS = new LinkedHashMap<>();

  static {
    ACTIONS.put("read", words -> read(words[1], words[2]));
    ACTIONS.put("write", words -> write(words));
    ACTIONS.put("mapwrite", words -> mapWrite(words));
    ACTIONS.put("mapget", words -> mapGet(words[1], words[2], words[3]));
    ACTIONS.put("split", words -> split(words[1], words[2], Integer.parseInt(words[3])));
    ACTIONS.put("tool", words -> tool(words));
    ACTIONS.put("configuration", words -> configuration(words));
  }

  private static Configuration conf = new Configuration();

  public static void main(String[] args) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    PrintStream answers = System.out;
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      String[] words = line.split("\t", -1);
      String answer;
      try {
        answer = ACTIONS.get(words[0]).run(words);
      } catch (Throwable problem) {
        problem.printStackTrace();
        answer = "failed " + problem;
      }
      answers.println(answer.replace('\n', ' '));
      answers.flush();
    }
  }

  /** read FILE RECORDS: the records of a SequenceFile, each with the strings of its key and its value. */
  private static String read(String file, String records) throws Exception {
    try (SequenceFile.Reader reader = new SequenceFile.Reader(conf, SequenceFile.Reader.file(new Path(file)));
        PrintStream out = lines(records)) {
      out.println(reader.getKeyClassName() + " " + reader.getValueClassName() + " " + reader.getCompressionType());
      Writable key = fresh(reader.getKeyClass());
      Writable value = fresh(reader.getValueClass());
      while (reader.next(key, value)) {
        print(out, bytes(key), bytes(value), utf8(key), utf8(value));
        value = fresh(reader.getValueClass());
      }
    }
    return "ok";
  }

  /** split FILE RECORDS PARTS: the same by byte ranges, one after the other, as a job's mappers would read it. */
  private static String split(String file, String records, int parts) throws Exception {
    Path path = new Path(file);
    long length = FileSystem.getLocal(conf).getFileStatus(path).getLen();
    try (PrintStream out = lines(records)) {
      for (int i = 0; i < parts; i++) {
        long start = length * i / parts;
        long end = length * (i + 1) / parts;
        try (SequenceFile.Reader reader = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path))) {
          if (start > reader.getPosition()) {
            reader.sync(start);
          }
          boolean more = start < end;
          while (more) {
            long position = reader.getPosition();
            Writable key = fresh(reader.getKeyClass());
            Writable value = fresh(reader.getValueClass());
            more = reader.next(key, value) && !(position >= end && reader.syncSeen());
            if (more) {
              print(out, bytes(key), bytes(value));
            }
          }
        }
      }
    }
    return "ok";
  }

  /** write RECORDS FILE KEYCLASS VALUECLASS COMPRESSION CODEC. */
  private static String write(String[] words) throws Exception {
    Class<?> keyClass = conf.getClassByName(words[3]);
    Class<?> valueClass = conf.getClassByName(words[4]);
    try (SequenceFile.Writer writer = SequenceFile.createWriter(conf, SequenceFile.Writer.file(new Path(words[2])),
        SequenceFile.Writer.keyClass(keyClass), SequenceFile.Writer.valueClass(valueClass),
        SequenceFile.Writer.compression(SequenceFile.CompressionType.valueOf(words[5]), codec(words[6])))) {
      for (byte[][] record : records(words[1])) {
        writer.append(parse(keyClass, record[0]), parse(valueClass, record[1]));
      }
    }
    return "ok";
  }

  /** mapwrite RECORDS DIRECTORY KEYCLASS VALUECLASS COMPRESSION CODEC. */
  private static String mapWrite(String[] words) throws Exception {
    Class<? extends WritableComparable> keyClass = conf.getClassByName(words[3]).asSubclass(WritableComparable.class);
    Class<?> valueClass = conf.getClassByName(words[4]);
    try (MapFile.Writer writer = new MapFile.Writer(conf, new Path(words[2]), MapFile.Writer.keyClass(keyClass),
        MapFile.Writer.valueClass(valueClass),
        MapFile.Writer.compression(SequenceFile.CompressionType.valueOf(words[5]), codec(words[6])))) {
      for (byte[][] record : records(words[1])) {
        writer.append((WritableComparable) parse(keyClass, record[0]), parse(valueClass, record[1]));
      }
    }
    return "ok";
  }

  /** mapget DIRECTORY KEYS VALUES: what a MapFile has for each key, an empty line where nothing. */
  private static String mapGet(String directory, String keys, String values) throws Exception {
    try (MapFile.Reader reader = new MapFile.Reader(new Path(directory), conf); PrintStream out = lines(values)) {
      for (byte[][] record : records(keys)) {
        WritableComparable<?> key = (WritableComparable<?>) parse(reader.getKeyClass(), record[0]);
        Writable value = reader.get(key, fresh(reader.getValueClass()));
        print(out, value == null ? new byte[0] : bytes(value));
      }
    }
    return "ok";
  }

  /** tool OUTPUT CLASS PROPERTIES ARGUMENT...: runs a Nutch command; its standard output goes to OUTPUT. */
  private static String tool(String[] words) throws Exception {
    Configuration own = (Configuration) Class.forName("org.apache.nutch.util.NutchConfiguration").getMethod("create")
        .invoke(null);
    for (String line : Files.readAllLines(Paths.get(words[3]))) {
      int equals = line.indexOf('=');
      own.set(line.substring(0, equals), line.substring(equals + 1));
    }
    Tool tool = (Tool) ReflectionUtils.newInstance(Class.forName(words[2]), own);
    PrintStream before = System.out;
    try (PrintStream out = lines(words[1])) {
      System.setOut(out);
      return "exit " + ToolRunner.run(own, tool, Arrays.copyOfRange(words, 4, words.length));
    } finally {
      System.setOut(before);
    }
  }

  /** configuration QUESTIONS ANSWERS FILE...: what a getter says of a property, by turns {@code getter name}. */
  private static String configuration(String[] words) throws Exception {
    Configuration own = new Configuration(false);
    for (String file : Arrays.copyOfRange(words, 3, words.length)) {
      own.addResource(new Path(file));
    }
    try (PrintStream out = lines(words[2])) {
      for (byte[][] record : records(words[1])) {
        String answer = ask(own, new String(record[0], StandardCharsets.UTF_8),
            new String(record[1], StandardCharsets.UTF_8));
        print(out, answer.getBytes(StandardCharsets.UTF_8));
      }
    }
    return "ok";
  }

  private static String ask(Configuration own, String getter, String name) {
    try {
      switch (getter) {
        case "int":
          return String.valueOf(own.getInt(name, -7));
        case "long":
          return String.valueOf(own.getLong(name, -7));
        case "float":
          return String.valueOf(Float.floatToIntBits(own.getFloat(name, -7)));
        case "double":
          return String.valueOf(Double.doubleToLongBits(own.getDouble(name, -7)));
        case "boolean":
          return own.getBoolean(name, true) + " " + own.getBoolean(name, false);
        case "strings":
          return String.join("|", own.getStrings(name) == null ? new String[0] : own.getStrings(name));
        case "trimmed":
          return String.join("|", own.getTrimmedStrings(name));
        default:
          return own.get(name) == null ? "null" : "=" + own.get(name);
      }
    } catch (RuntimeException problem) {
      return "error";
    }
  }

  private static PrintStream lines(String file) throws Exception {
    return new PrintStream(Files.newOutputStream(Paths.get(file)), false, "UTF-8");
  }

  private static void print(PrintStream out, byte[]... columns) {
    StringBuilder line = new StringBuilder();
    for (byte[] column : columns) {
      line.append(line.length() == 0 ? "" : " ").append(Base64.getEncoder().encodeToString(column)).append('.');
    }
    out.println(line);
  }

  private static List<byte[][]> records(String file) throws Exception {
    List<byte[][]> result = new ArrayList<>();
    for (String line : Files.readAllLines(Paths.get(file))) {
      String[] columns = line.split(" ");
      byte[][] record = new byte[columns.length][];
      for (int i = 0; i < columns.length; i++) {
        record[i] = Base64.getDecoder().decode(columns[i].substring(0, columns[i].length() - 1));
      }
      result.add(record);
    }
    return result;
  }

  private static CompressionCodec codec(String name) throws Exception {
    return (CompressionCodec) ReflectionUtils.newInstance(conf.getClassByName(name), conf);
  }

  private static Writable fresh(Class<?> type) {
    return type == org.apache.hadoop.io.NullWritable.class ? org.apache.hadoop.io.NullWritable.get()
        : (Writable) ReflectionUtils.newInstance(type, conf);
  }

  private static Writable parse(Class<?> type, byte[] data) throws Exception {
    Writable value = fresh(type);
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(data));
    value.readFields(in);
    if (in.available() > 0) {
      throw new IllegalStateException(in.available() + " bytes left over after " + type.getName());
    }
    return value;
  }

  private static byte[] bytes(Writable value) throws Exception {
    ByteArrayOutputStream buffer = new ByteArrayOutputStream();
    value.write(new DataOutputStream(buffer));
    return buffer.toByteArray();
  }

  private static byte[] utf8(Object value) {
    return value.toString().getBytes(StandardCharsets.UTF_8);
  }
}
