// franz-go as a test client; see ../README.md.
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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var ctx = context.Background()

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

func newClient(bootstrap string, options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.SeedBrokers(bootstrap), kgo.MetadataMinAge(100*time.Millisecond))
	client, err := kgo.NewClient(options...)
	check(err)
	return client
}

func produce(bootstrap, topic string, args []string) {
	partition, codec, acks := number(args[0]), args[1], args[2]
	first, count, size, base := number(args[3]), number(args[4]), number(args[5]), number(args[6])
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	options := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[codec]),
		kgo.ProducerLinger(20 * time.Millisecond), kgo.AllowAutoTopicCreation(), kgo.ProducerBatchMaxBytes(20_000_000),
	}
	switch acks {
	case "0":
		options = append(options, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	case "1":
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	client := newClient(bootstrap, options...)
	defer client.Close()
	var records []*kgo.Record
	for i := first; i < first+count; i++ {
		records = append(records, &kgo.Record{
			Topic: topic, Partition: int32(partition), Key: []byte(fmt.Sprintf("key-%d", i)), Value: value(i, size),
			Headers:   []kgo.RecordHeader{{Key: "index", Value: []byte(strconv.Itoa(i))}},
			Timestamp: time.UnixMilli(int64(base + i)),
		})
	}
	check(client.ProduceSync(ctx, records...).FirstErr())
	if acks == "0" {
		say(map[string]any{"offsets": []int{-1, -1}})
		return
	}
	say(map[string]any{"offsets": []int64{records[0].Offset, records[count-1].Offset}})
}

func consume(bootstrap, topic string, args []string) {
	left := number(args[0])
	client := newClient(bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxPartitionBytes(20_000_000))
	defer client.Close()
	for left > 0 {
		limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
		fetches := client.PollFetches(limited)
		cancel()
		check(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if left--; left < 0 {
				return
			}
			index := number(string(r.Headers[0].Value))
			say(map[string]any{
				"partition": r.Partition, "offset": r.Offset, "timestamp": r.Timestamp.UnixMilli(), "key": string(r.Key),
				"index": index, "size": len(r.Value), "intact": bytes.Equal(r.Value, value(index, len(r.Value))),
			})
		})
	}
}

func member(bootstrap, topic string, args []string) {
	var lock sync.Mutex
	owned := map[int32]bool{}
	changed := func(partitions []int32, present bool) {
		lock.Lock()
		defer lock.Unlock()
		for _, p := range partitions {
			if present {
				owned[p] = true
			} else {
				delete(owned, p)
			}
		}
		now := []int32{}
		for p := range owned {
			now = append(now, p)
		}
		slices.Sort(now)
		say(map[string]any{"assigned": now})
	}
	gone := func(_ context.Context, _ *kgo.Client, m map[string][]int32) { changed(m[topic], false) }
	client := newClient(bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(args[0]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(time.Duration(number(args[1]))*time.Millisecond),
		kgo.HeartbeatInterval(500*time.Millisecond), kgo.AutoCommitInterval(500*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { changed(m[topic], true) }),
		kgo.OnPartitionsRevoked(gone), kgo.OnPartitionsLost(gone))
	end, cancel := context.WithCancel(ctx)
	go func() {
		bufio.NewReader(os.Stdin).ReadByte()
		cancel()
	}()
	for end.Err() == nil {
		client.PollFetches(end).EachRecord(func(r *kgo.Record) {
			say(map[string]any{"record": []any{r.Partition, r.Offset}})
		})
	}
	check(client.CommitUncommittedOffsets(ctx))
	client.Close()
}

func expect(err error, want *kerr.Error) {
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
	client := newClient(bootstrap)
	defer client.Close()
	adm := kadm.NewClient(client)
	hour := "3600000"
	configs := map[string]*string{"retention.ms": &hour}
	_, err := adm.CreateTopic(ctx, 3, 1, configs, topic)
	check(err)
	_, err = adm.CreateTopic(ctx, 3, 1, configs, topic)
	expect(err, kerr.TopicAlreadyExists)
	_, err = adm.CreateTopic(ctx, 1, 3, nil, topic+"-bad")
	expect(err, kerr.InvalidReplicationFactor)
	eventually(func() bool {
		topics, err := adm.ListTopics(ctx, topic)
		check(err)
		return len(topics[topic].Partitions) == 3
	})
	created, err := adm.UpdatePartitions(ctx, 5, topic)
	check(err)
	check(created.Error())
	fewer, err := adm.UpdatePartitions(ctx, 4, topic)
	check(err)
	expect(fewer.Error(), kerr.InvalidPartitions)
	described := func(key string) string {
		answer, err := adm.DescribeTopicConfigs(ctx, topic)
		check(err)
		for _, config := range answer[0].Configs {
			if config.Key == key {
				return config.MaybeValue()
			}
		}
		return ""
	}
	if described("retention.ms") != hour {
		log.Panic("retention.ms is ", described("retention.ms"))
	}
	limit := "2000"
	altered, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &limit},
		{Op: kadm.DeleteConfig, Name: "retention.ms"},
	}, topic)
	check(err)
	check(altered[0].Err)
	eventually(func() bool {
		return described("max.message.bytes") == limit && described("retention.ms") == "604800000"
	})

	producer := newClient(bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))
	defer producer.Close()
	start := time.Now()
	for i := range 10 {
		check(producer.ProduceSync(ctx, &kgo.Record{Value: []byte(strconv.Itoa(i)), Timestamp: start.Add(time.Duration(i) * time.Millisecond)}).FirstErr())
	}
	before := kadm.Offsets{}
	before.AddOffset(topic, 0, 4, -1)
	deleted, err := adm.DeleteRecords(ctx, before)
	check(err)
	check(deleted.Error())
	starts, err := adm.ListStartOffsets(ctx, topic)
	check(err)
	ends, err := adm.ListEndOffsets(ctx, topic)
	check(err)
	if starts[topic][0].Offset != 4 || ends[topic][0].Offset != 10 {
		log.Panic(starts, ends)
	}
	highest, err := adm.ListMaxTimestampOffsets(ctx, topic)
	check(err)
	if highest[topic][0].Offset != 9 {
		log.Panic(highest)
	}

	group := topic + "-group"
	commit := kadm.Offsets{}
	commit.Add(kadm.Offset{Topic: topic, Partition: 0, At: 7, LeaderEpoch: -1, Metadata: "note"})
	check(adm.CommitAllOffsets(ctx, group, commit))
	fetched, err := adm.FetchOffsets(ctx, group)
	check(err)
	if at, _ := fetched.Lookup(topic, 0); at.At != 7 || at.Metadata != "note" {
		log.Panic(fetched)
	}
	lag, err := adm.Lag(ctx, group)
	check(err)
	if lag[group].Lag.Total() != 3 || lag[group].State != "Empty" {
		log.Panic(lag)
	}
	groups, err := adm.ListGroups(ctx)
	check(err)
	if _, there := groups[group]; !there {
		log.Panic(groups)
	}
	_, err = adm.DeleteGroup(ctx, group)
	check(err)
	_, err = adm.DeleteGroup(ctx, group)
	expect(err, kerr.GroupIDNotFound)

	brokers, err := adm.ListBrokers(ctx)
	check(err)
	if ids := brokers.NodeIDs(); len(ids) != 1 || ids[0] != 1 {
		log.Panic(brokers)
	}
	dirs, err := adm.DescribeAllLogDirs(ctx, nil)
	check(err)
	for _, dir := range dirs[1] {
		check(dir.Err)
	}
	producers, err := adm.DescribeProducers(ctx, kadm.TopicsSet{topic: {0: {}}})
	check(err)
	if len(producers[topic].Partitions) == 0 {
		log.Panic(producers)
	}
	_, err = adm.DeleteTopic(ctx, topic)
	check(err)
	eventually(func() bool {
		_, err := adm.DeleteTopic(ctx, topic)
		return errors.Is(err, kerr.UnknownTopicOrPartition)
	})
	say(map[string]any{"ok": true})
}

func main() {
	commands := map[string]func(string, string, []string){
		"produce": produce, "consume": consume, "member": member, "admin": admin,
	}
	commands[os.Args[1]](os.Args[2], os.Args[3], os.Args[4:])
}
