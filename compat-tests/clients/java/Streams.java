import java.util.Properties;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * Kafka Streams: counts the records of a topic by the last character of their key, in two threads, by way of a topic
 * that is partitioned anew and of a store with a changelog.
 *
 * <p>{@code Streams BOOTSTRAP APPLICATION TOPIC STATE_DIR}; prints {@code {"count": [key, count]}} on each change and
 * ends when its standard input ends.
 */
public final class Streams {
    private static void say(String key, long count) {
        System.out.printf("{\"count\": [\"%s\", %d]}%n", key, count);
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[3]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 500);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[2])
                .selectKey((key, value) -> key.substring(key.length() - 1))
                .groupByKey()
                .count(Materialized.as("counts"))
                .toStream()
                .foreach(Streams::say);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(exception -> {
            exception.printStackTrace();
            Runtime.getRuntime().halt(1);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        while (System.in.read() >= 0) {}
        // Else the next run would wait for the session of this one.
        streams.close(CloseOptions.groupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP));
    }
}
