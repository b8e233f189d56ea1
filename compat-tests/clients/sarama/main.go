// sarama as a test client; see ../README.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

func say(fields map[string]any) {
	line, err := json.Marshal(fields)
	check(err)
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	check(err)
	return n
}

func value(index, size int) []byte {
	text := []byte(fmt.Sprintf("record %d ", index))
	return bytes.Repeat(text, size/len(text)+1)[:size]
}

func newConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	config.Producer.Return.Successes = true
	config.Producer.MaxMessageBytes = 20_000_000
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = 500 * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	return config
}

func produce(bootstrap, topic string, args []string) {
	partition, codec, acks := number(args[0]), args[1], number(args[2])
	first, count, size, base := number(args[3]), number(args[4]), number(args[5]), number(args[6])
	config := newConfig()
	check(config.Producer.Compression.UnmarshalText([]byte(codec)))
	config.Producer.RequiredAcks = sarama.RequiredAcks(acks)
	if acks == -1 {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	config.Producer.Flush.Frequency = 20 * time.Millisecond
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	check(err)
	var messages []*sarama.ProducerMessage
	for i := first; i < first+count; i++ {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: topic, Partition: int32(partition), Key: sarama.StringEncoder(fmt.Sprintf("key-%d", i)),
			Value:     sarama.ByteEncoder(value(i, size)),
			Headers:   []sarama.RecordHeader{{Key: []byte("index"), Value: []byte(strconv.Itoa(i))}},
			Timestamp: time.UnixMilli(int64(base + i)),
		})
	}
	check(producer.SendMessages(messages))
	check(producer.Close())
	if acks == 0 {
		say(map[string]any{"offsets": []int{-1, -1}})
		return
	}
	say(map[string]any{"offsets": []int64{messages[0].Offset, messages[count-1].Offset}})
}

func consume(bootstrap, topic string, args []string) {
	left := number(args[0])
	config := newConfig()
	config.Consumer.Fetch.Default = 20_000_000
	consumer, err := sarama.NewConsumer([]string{bootstrap}, config)
	check(err)
	partitions, err := consumer.Partitions(topic)
	check(err)
	all := make(chan *sarama.ConsumerMessage)
	for _, p := range partitions {
		reader, err := consumer.ConsumePartition(topic, p, sarama.OffsetOldest)
		check(err)
		go func() {
			for message := range reader.Messages() {
				all <- message
			}
		}()
	}
	for ; left > 0; left-- {
		select {
		case m := <-all:
			index := number(string(m.Headers[0].Value))
			say(map[string]any{
				"partition": m.Partition, "offset": m.Offset, "timestamp": m.Timestamp.UnixMilli(), "key": string(m.Key),
				"index": index, "size": len(m.Value), "intact": bytes.Equal(m.Value, value(index, len(m.Value))),
			})
		case <-time.After(30 * time.Second):
			log.Panic("no record within 30 s")
		}
	}
}

type handler struct{ lock sync.Mutex }

func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	now := []int32{}
	for _, partitions := range session.Claims() {
		now = append(now, partitions...)
	}
	slices.Sort(now)
	say(map[string]any{"assigned": now})
	return nil
}

func (h *handler) Cleanup(sarama.ConsumerGroupSession) error {
	say(map[string]any{"assigned": []int{}})
	return nil
}

func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		h.lock.Lock()
		say(map[string]any{"record": []any{message.Partition, message.Offset}})
		h.lock.Unlock()
		session.MarkMessage(message, "")
	}
	return nil
}

func member(bootstrap, topic string, args []string) {
	config := newConfig()
	config.Consumer.Group.Session.Timeout = time.Duration(number(args[1])) * time.Millisecond
	group, err := sarama.NewConsumerGroup([]string{bootstrap}, args[0], config)
	check(err)
	end, cancel := context.WithCancel(context.Background())
	go func() {
		bufio.NewReader(os.Stdin).ReadByte()
		cancel()
	}()
	for end.Err() == nil {
		check(group.Consume(end, []string{topic}, &handler{}))
	}
	check(group.Close())
}

func expect(err error, want sarama.KError) {
	if !errors.Is(err, want) {
		log.Panicf("got %v, not %v", err, want)
	}
}

// Metadata changes reach a broker's cache a moment after they are answered.
func eventually(holds func() bool) {
	for end := time.Now().Add(15 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			log.Panic("not within 15 s")
		}
	}
}

func admin(bootstrap, topic string, _ []string) {
	config := newConfig()
	adm, err := sarama.NewClusterAdmin([]string{bootstrap}, config)
	check(err)
	hour := "3600000"
	detail := &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &hour}}
	check(adm.CreateTopic(topic, detail, false))
	expect(adm.CreateTopic(topic, detail, false), sarama.ErrTopicAlreadyExists)
	expect(adm.CreateTopic(topic+"-bad", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 3}, false),
		sarama.ErrInvalidReplicationFactor)
	eventually(func() bool {
		topics, err := adm.ListTopics()
		check(err)
		return topics[topic].NumPartitions == 3
	})
	check(adm.CreatePartitions(topic, 5, nil, false))
	expect(adm.CreatePartitions(topic, 4, nil, false), sarama.ErrInvalidPartitions)
	described := func(key string) string {
		entries, err := adm.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
		check(err)
		for _, entry := range entries {
			if entry.Name == key {
				return entry.Value
			}
		}
		return ""
	}
	if described("retention.ms") != hour {
		log.Panic("retention.ms is ", described("retention.ms"))
	}
	limit := "2000"
	check(adm.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		"max.message.bytes": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &limit},
	}, false))
	eventually(func() bool { return described("max.message.bytes") == limit })
	check(adm.AlterConfig(sarama.TopicResource, topic, map[string]*string{"segment.bytes": &hour}, false))
	eventually(func() bool {
		return described("segment.bytes") == hour && described("max.message.bytes") == "1048588"
	})

	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	check(err)
	for i := range 10 {
		_, offset, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("small")})
		check(err)
		if offset != int64(i) {
			log.Panic(offset)
		}
	}
	check(producer.Close())
	check(adm.DeleteRecords(topic, map[int32]int64{0: 4}))
	client, err := sarama.NewClient([]string{bootstrap}, config)
	check(err)
	oldest, err := client.GetOffset(topic, 0, sarama.OffsetOldest)
	check(err)
	newest, err := client.GetOffset(topic, 0, sarama.OffsetNewest)
	check(err)
	if oldest != 4 || newest != 10 {
		log.Panic(oldest, newest)
	}

	group := topic + "-group"
	offsets, err := sarama.NewOffsetManagerFromClient(group, client)
	check(err)
	partition, err := offsets.ManagePartition(topic, 0)
	check(err)
	partition.MarkOffset(7, "note")
	offsets.Commit()
	check(partition.Close())
	check(offsets.Close())
	fetched, err := adm.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
	check(err)
	if block := fetched.GetBlock(topic, 0); block.Offset != 7 || block.Metadata != "note" {
		log.Panic(block)
	}
	groups, err := adm.ListConsumerGroups()
	check(err)
	if _, there := groups[group]; !there {
		log.Panic(groups)
	}
	states, err := adm.DescribeConsumerGroups([]string{group})
	check(err)
	if states[0].State != "Empty" {
		log.Panic(states[0])
	}
	check(adm.DeleteConsumerGroup(group))
	expect(adm.DeleteConsumerGroup(group), sarama.ErrGroupIDNotFound)

	brokers, controller, err := adm.DescribeCluster()
	check(err)
	if len(brokers) != 1 || controller != 1 {
		log.Panic(brokers, controller)
	}
	dirs, err := adm.DescribeLogDirs([]int32{1})
	check(err)
	if len(dirs[1]) == 0 {
		log.Panic(dirs)
	}
	check(adm.DeleteTopic(topic))
	eventually(func() bool { return errors.Is(adm.DeleteTopic(topic), sarama.ErrUnknownTopicOrPartition) })
	check(adm.Close())
	say(map[string]any{"ok": true})
}

func main() {
	commands := map[string]func(string, string, []string){
		"produce": produce, "consume": consume, "member": member, "admin": admin,
	}
	commands[os.Args[1]](os.Args[2], os.Args[3], os.Args[4:])
}
