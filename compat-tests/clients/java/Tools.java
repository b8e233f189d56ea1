import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;

import org.apache.kafka.common.utils.Exit;
import org.slf4j.LoggerFactory;

/**
 * Runs the main methods of Apache Kafka's command-line tools one after the other in one JVM, since its start-up is
 * most of what a tool costs.
 *
 * <p>A request on standard input is a count of words, the words (main class and arguments) and what the tool finds
 * on its own standard input; the answer is the exit status and what it wrote to both outputs. Numbers are 32 bits
 * big endian and each text or byte string has its length before it.
 */
public final class Tools {
    /** Thrown in place of ending the JVM. */
    private static final class Exited extends RuntimeException {
        private final int status;

        Exited(int status) {
            super("exit " + status, null, false, false);
            this.status = status;
        }
    }

    private static byte[] readBytes(DataInputStream input) throws java.io.IOException {
        byte[] bytes = new byte[input.readInt()];
        input.readFully(bytes);
        return bytes;
    }

    private static int run(String mainClass, String[] arguments) throws Exception {
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException exception) {
            Throwable cause = exception.getCause();
            while (cause != null && !(cause instanceof Exited)) {
                cause = cause.getCause();
            }
            if (cause instanceof Exited exited) {
                return exited.status;
            }
            exception.getCause().printStackTrace();
            return 1;
        }
    }

    /** Serves until the end of its input. */
    public static void main(String[] ignored) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(System.out);
        // The logger keeps the standard error of now: what it says is not taken for a tool's.
        LoggerFactory.getLogger(Tools.class).debug("ready");
        Exit.setExitProcedure((status, message) -> {
            throw new Exited(status);
        });
        Exit.setHaltProcedure((status, message) -> {
            throw new Exited(status);
        });
        PrintStream errors = System.err;
        while (true) {
            String[] words;
            try {
                words = new String[requests.readInt()];
            } catch (EOFException exception) {
                return;
            }
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(readBytes(requests), StandardCharsets.UTF_8);
            }
            System.setIn(new ByteArrayInputStream(readBytes(requests)));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            int status = run(words[0], java.util.Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            System.err.flush();
            System.setErr(errors);
            answers.writeInt(status);
            answers.writeInt(out.size());
            out.writeTo(answers);
            answers.writeInt(err.size());
            err.writeTo(answers);
            answers.flush();
        }
    }
}
