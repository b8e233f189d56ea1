import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.kafka.common.utils.internals.Exit;
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
    /** Thrown in place of ending the JVM; a tool may catch it, so what counts is what stood at the first exit. */
    private static final class Exited extends RuntimeException {
        Exited() {
            super("exit", null, false, false);
        }
    }

    /** One run: its outputs up to its first exit, and that exit's status. */
    private static final class Run {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();
        private final ByteArrayOutputStream err = new ByteArrayOutputStream();
        private final List<Runnable> hooks = new ArrayList<>();
        private byte[] outAtExit;
        private byte[] errAtExit;
        private int status;

        synchronized void exit(int with) {
            if (outAtExit == null) {
                hooks.forEach(Runnable::run);
                System.out.flush();
                System.err.flush();
                outAtExit = out.toByteArray();
                errAtExit = err.toByteArray();
                status = with;
            }
        }

        void run(String mainClass, String[] arguments) throws Exception {
            current = this;
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            try {
                Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
                exit(0);
            } catch (InvocationTargetException exception) {
                if (!(exception.getCause() instanceof Exited)) {
                    exception.getCause().printStackTrace();
                }
                exit(1);
            }
        }
    }

    private static volatile Run current;

    private static void exit(int status) {
        current.exit(status);
        throw new Exited();
    }

    private static byte[] readBytes(DataInputStream input) throws java.io.IOException {
        byte[] bytes = new byte[input.readInt()];
        input.readFully(bytes);
        return bytes;
    }

    /** Serves until the end of its input. */
    public static void main(String[] ignored) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(System.out);
        // The logger keeps the standard error of now: what it says is not taken for a tool's.
        LoggerFactory.getLogger(Tools.class).debug("ready");
        Exit.setExitProcedure((status, message) -> exit(status));
        Exit.setShutdownHookAdder((name, hook) -> current.hooks.add(hook));
        Exit.setHaltProcedure((status, message) -> exit(status));
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
            Run run = new Run();
            run.run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.setErr(errors);
            answers.writeInt(run.status);
            answers.writeInt(run.outAtExit.length);
            answers.write(run.outAtExit);
            answers.writeInt(run.errAtExit.length);
            answers.write(run.errAtExit);
            answers.flush();
        }
    }
}
