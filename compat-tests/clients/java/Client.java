import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka's own Java client as a test client; see ../README.md. */
public final class Client {
    private static void say(String format, Object... arguments) {
        System.out.printf(format + "%n", arguments);
        System.out.flush();
    }

    private static void check(boolean holds, Object seen) {
        if (!holds) {
            throw new AssertionError(String.valueOf(seen));
        }
    }

    private static byte[] value(int index, int size) {
        byte[] text = ("record " + index + " ").getBytes(StandardCharsets.UTF_8);
        byte[] value = new byte[size];
        for (int i = 0; i < size; i++) {
            value[i] = text[i % text.length];
        }
        return value;
    }

    private static Properties properties(String bootstrap, Object... more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < more.length; i += 2) {
            properties.put(more[i], more[i + 1]);
        }
        return properties;
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, Object... more) {
        return new KafkaProducer<>(properties(bootstrap, more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, Object... more) {
        return new KafkaConsumer<>(properties(bootstrap, more), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void produce(String bootstrap, String topic, String[] a) throws Exception {
        int first = Integer.parseInt(a[3]);
        int count = Integer.parseInt(a[4]);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = producer(bootstrap, "compression.type", a[1], "acks", a[2],
                "enable.idempotence", a[2].equals("-1"), "linger.ms", 20, "max.request.size", 20_000_000)) {
            for (int i = first; i < first + count; i++) {
                var record = new ProducerRecord<>(topic, Integer.parseInt(a[0]), Long.parseLong(a[6]) + i,
                    ("key-" + i).getBytes(StandardCharsets.UTF_8), value(i, Integer.parseInt(a[5])));
                record.headers().add("index", Integer.toString(i).getBytes(StandardCharsets.UTF_8));
                sent.add(producer.send(record));
            }
            producer.flush();
        }
        long last = 0;
        for (var future : sent) {
            last = future.get().offset();
        }
        say("{\"offsets\": [%d, %d]}", sent.get(0).get().offset(), last);
    }

    private static void consume(String bootstrap, String topic, String[] a) {
        int left = Integer.parseInt(a[0]);
        try (var consumer = consumer(bootstrap, "max.partition.fetch.bytes", 20_000_000)) {
            var partitions = consumer.partitionsFor(topic).stream()
                .map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (left > 0) {
                var records = consumer.poll(Duration.ofSeconds(30));
                check(!records.isEmpty(), "no record within 30 s");
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (left-- <= 0) {
                        break;
                    }
                    int index = Integer.parseInt(new String(record.headers().lastHeader("index").value(), StandardCharsets.UTF_8));
                    say("{\"partition\": %d, \"offset\": %d, \"timestamp\": %d, \"key\": \"%s\", \"index\": %d, \"size\": %d, \"intact\": %b}",
                        record.partition(), record.offset(), record.timestamp(), new String(record.key(), StandardCharsets.UTF_8),
                        index, record.value().length, Arrays.equals(record.value(), value(index, record.value().length)));
                }
            }
        }
    }

    private static void member(String bootstrap, String topic, String[] a) throws Exception {
        try (var consumer = consumer(bootstrap, "group.id", a[0], "auto.offset.reset", "earliest",
                "session.timeout.ms", Integer.parseInt(a[1]), "heartbeat.interval.ms", 500, "auto.commit.interval.ms", 500)) {
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                private void report(Collection<TopicPartition> without) {
                    var now = consumer.assignment().stream().filter(p -> !without.contains(p))
                        .map(TopicPartition::partition).sorted().map(String::valueOf).collect(Collectors.joining(", "));
                    say("{\"assigned\": [%s]}", now);
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    report(Set.of());
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    report(partitions);
                }
            });
            Thread end = new Thread(() -> {
                try {
                    System.in.read();
                } catch (java.io.IOException exception) {
                    throw new java.io.UncheckedIOException(exception);
                }
            });
            end.setDaemon(true);
            end.start();
            while (end.isAlive()) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    say("{\"record\": [%d, %d]}", record.partition(), record.offset());
                }
            }
        }
    }

    private static void fails(Class<? extends Exception> kind, Future<?> future) throws Exception {
        try {
            future.get();
            throw new AssertionError("no " + kind);
        } catch (ExecutionException exception) {
            check(kind.isInstance(exception.getCause()), exception);
        }
    }

    /** Metadata changes reach a broker's cache a moment after they are answered. */
    private static void eventually(Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + 15_000_000_000L;
        while (!holds.call()) {
            check(System.nanoTime() < end, "not within 15 s");
            Thread.sleep(20);
        }
    }

    private static void admin(String bootstrap, String topic, String[] ignored) throws Exception {
        try (Admin admin = Admin.create(properties(bootstrap))) {
            var wanted = new NewTopic(topic, 3, (short) 1).configs(Map.of("retention.ms", "3600000"));
            var created = admin.createTopics(List.of(wanted));
            check(created.numPartitions(topic).get() == 3 && created.replicationFactor(topic).get() == 1, created);
            check(created.config(topic).get().get("retention.ms").value().equals("3600000"), created.config(topic).get());
            fails(TopicExistsException.class, admin.createTopics(List.of(wanted)).all());
            fails(InvalidReplicationFactorException.class,
                admin.createTopics(List.of(new NewTopic(topic + "-bad", 1, (short) 3))).all());
            fails(InvalidConfigurationException.class, admin.createTopics(
                List.of(new NewTopic(topic + "-bad", 1, (short) 1).configs(Map.of("no.such.key", "1")))).all());
            eventually(() -> admin.listTopics().names().get().contains(topic));
            check(!admin.listTopics().names().get().contains(topic + "-bad"), "-bad is there");
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
            fails(InvalidPartitionsException.class,
                admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all());
            eventually(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 5);

            var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            Callable<Map<String, ConfigEntry>> described = () -> admin.describeConfigs(List.of(resource)).all().get()
                .get(resource).entries().stream().collect(Collectors.toMap(ConfigEntry::name, entry -> entry));
            check(described.call().get("retention.ms").source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG,
                described.call().get("retention.ms"));
            admin.incrementalAlterConfigs(Map.of(resource, List.of(
                new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND),
                new AlterConfigOp(new ConfigEntry("max.message.bytes", "2000"), AlterConfigOp.OpType.SET),
                new AlterConfigOp(new ConfigEntry("retention.ms", null), AlterConfigOp.OpType.DELETE)))).all().get();
            eventually(() -> described.call().get("max.message.bytes").value().equals("2000"));
            check(described.call().get("cleanup.policy").value().equals("delete,compact"), described.call().get("cleanup.policy"));
            check(described.call().get("retention.ms").value().equals("604800000"), described.call().get("retention.ms"));
            fails(InvalidConfigurationException.class, admin.incrementalAlterConfigs(Map.of(resource, List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), AlterConfigOp.OpType.SET)))).all());

            try (var producer = producer(bootstrap)) {
                for (int i = 0; i < 10; i++) {
                    producer.send(new ProducerRecord<>(topic, 0, 1000L + i, new byte[] {1}, new byte[100])).get();
                }
            }
            var zero = new TopicPartition(topic, 0);
            check(admin.listOffsets(Map.of(zero, OffsetSpec.latest())).partitionResult(zero).get().offset() == 10, "latest");
            check(admin.listOffsets(Map.of(zero, OffsetSpec.maxTimestamp())).partitionResult(zero).get().offset() == 9, "max");
            var found = admin.listOffsets(Map.of(zero, OffsetSpec.forTimestamp(1005))).partitionResult(zero).get();
            check(found.offset() == 5 && found.timestamp() == 1005, found);
            var missing = admin.listOffsets(Map.of(zero, OffsetSpec.forTimestamp(5000))).partitionResult(zero).get();
            check(missing.offset() == -1, missing);
            var deleted = admin.deleteRecords(Map.of(zero, RecordsToDelete.beforeOffset(4)));
            check(deleted.lowWatermarks().get(zero).get().lowWatermark() == 4, deleted);
            check(admin.listOffsets(Map.of(zero, OffsetSpec.earliest())).partitionResult(zero).get().offset() == 4, "earliest");
            check(admin.describeProducers(List.of(zero)).all().get().get(zero).activeProducers().size() == 1, "producers");

            String group = topic + "-group";
            admin.alterConsumerGroupOffsets(group, Map.of(zero, new OffsetAndMetadata(7, "note"))).all().get();
            check(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .equals(Map.of(zero, new OffsetAndMetadata(7, "note"))), "offsets");
            check(admin.listGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)), "no group");
            check(admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState() == GroupState.EMPTY, "state");
            admin.deleteConsumerGroupOffsets(group, Set.of(zero)).all().get();
            check(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().isEmpty(), "offsets left");
            admin.deleteConsumerGroups(List.of(group)).all().get();
            fails(GroupIdNotFoundException.class, admin.deleteConsumerGroups(List.of(group)).all());

            check(admin.describeCluster().nodes().get().size() == 1, "nodes");
            check(admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).size() == 1, "log dirs");
            check(admin.listConfigResources().all().get() != null, "config resources");
            admin.deleteTopics(List.of(topic)).all().get();
            eventually(() -> {
                try {
                    admin.deleteTopics(List.of(topic)).all().get();
                    return false;
                } catch (ExecutionException exception) {
                    return exception.getCause() instanceof UnknownTopicOrPartitionException;
                }
            });
        }
        say("{\"ok\": true}");
    }

    /** One command and exit. */
    public static void main(String[] arguments) throws Exception {
        String[] rest = Arrays.copyOfRange(arguments, 3, arguments.length);
        switch (arguments[0]) {
            case "produce" -> produce(arguments[1], arguments[2], rest);
            case "consume" -> consume(arguments[1], arguments[2], rest);
            case "member" -> member(arguments[1], arguments[2], rest);
            case "admin" -> admin(arguments[1], arguments[2], rest);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }
}
