// kafkajs as a test client; see ../README.md.
'use strict'

const assert = require('node:assert')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, PartitionAssigners } = require('kafkajs')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const say = fields => process.stdout.write(JSON.stringify(fields) + '\n')

const value = (index, size) => {
  const text = `record ${index} `
  return Buffer.from(text.repeat(Math.floor(size / text.length) + 1).slice(0, size))
}

const connect = bootstrap => new Kafka({ clientId: 'compat', brokers: [bootstrap], logLevel: 1 })

async function produce (bootstrap, topic, partition, codec, acks, first, count, size, base) {
  const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }
  const producer = connect(bootstrap).producer({ idempotent: acks === '-1' })
  await producer.connect()
  const messages = []
  for (let i = Number(first); i < Number(first) + Number(count); i++) {
    messages.push({
      partition: Number(partition),
      key: `key-${i}`,
      value: value(i, Number(size)),
      headers: { index: String(i) },
      timestamp: String(Number(base) + i)
    })
  }
  const answer = await producer.send({ topic, acks: Number(acks), compression: codecs[codec], messages })
  await producer.disconnect()
  if (acks === '0') {
    say({ offsets: [-1, -1] })
  } else {
    const start = Number(answer[0].baseOffset)
    say({ offsets: [start, start + messages.length - 1] })
  }
}

async function consume (bootstrap, topic, count) {
  const consumer = connect(bootstrap).consumer({ groupId: `${topic}-${process.pid}-${Date.now()}`, maxBytesPerPartition: 20000000 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let left = Number(count)
  const timer = setTimeout(() => { throw new Error('no record within 30 s') }, 30000)
  await new Promise(resolve => consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      if (left-- <= 0) return
      timer.refresh()
      const index = Number(message.headers.index.toString())
      say({
        partition,
        offset: Number(message.offset),
        timestamp: Number(message.timestamp),
        key: message.key.toString(),
        index,
        size: message.value.length,
        intact: message.value.equals(value(index, message.value.length))
      })
      if (left === 0) resolve()
    }
  }))
  clearTimeout(timer)
  await consumer.disconnect()
}

async function member (bootstrap, topic, group, sessionMs) {
  const consumer = connect(bootstrap).consumer({
    groupId: group,
    sessionTimeout: Number(sessionMs),
    heartbeatInterval: 500,
    maxWaitTimeInMs: 500,
    partitionAssigners: [PartitionAssigners.roundRobin]
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
    say({ assigned: (payload.memberAssignment[topic] || []).sort((a, b) => a - b) }))
  consumer.on(consumer.events.REBALANCING, () => say({ assigned: [] }))
  const end = new Promise(resolve => { process.stdin.on('end', resolve); process.stdin.on('data', resolve) })
  process.stdin.resume()
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => say({ record: [partition, Number(message.offset)] })
  })
  await end
  await consumer.disconnect()
}

// Metadata changes reach a broker's cache a moment after they are answered.
async function eventually (holds) {
  for (const end = Date.now() + 15000; !await holds(); await new Promise(resolve => setTimeout(resolve, 20))) {
    assert(Date.now() < end, 'not within 15 s')
  }
}

const failure = async promise => {
  try {
    await promise
  } catch (error) {
    return error.type || error.cause?.type || error.errors?.[0].type || error.groups?.[0].error?.type || String(error)
  }
}

async function admin (bootstrap, topic) {
  const kafka = connect(bootstrap)
  const client = kafka.admin({ retry: { retries: 0 } })
  await client.connect()
  const configEntries = [{ name: 'retention.ms', value: '3600000' }]
  const topics = [{ topic, numPartitions: 3, replicationFactor: 1, configEntries }]
  assert.strictEqual(await client.createTopics({ topics, waitForLeaders: false }), true)
  // kafkajs answers false for a topic that is there
  assert.strictEqual(await client.createTopics({ topics }), false)
  const impossible = [{ topic: topic + '-bad', numPartitions: 1, replicationFactor: 3 }]
  assert.strictEqual(await failure(client.createTopics({ topics: impossible })), 'INVALID_REPLICATION_FACTOR')
  await eventually(async () => (await client.listTopics()).includes(topic))
  await client.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
  assert.strictEqual(
    await failure(client.createPartitions({ topicPartitions: [{ topic, count: 4 }] })), 'INVALID_PARTITIONS')
  await eventually(async () => (await client.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length === 5)
  const described = async () => {
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }]
    const answer = await client.describeConfigs({ includeSynonyms: true, resources })
    return Object.fromEntries(answer.resources[0].configEntries.map(entry => [entry.configName, entry.configValue]))
  }
  assert.strictEqual((await described())['retention.ms'], '3600000')
  await client.alterConfigs({
    resources: [{
      type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name: 'max.message.bytes', value: '2000' }]
    }]
  })
  await eventually(async () => {
    const now = await described()
    return now['max.message.bytes'] === '2000' && now['retention.ms'] === '604800000'
  })

  const producer = kafka.producer()
  await producer.connect()
  for (let i = 0; i < 10; i++) await producer.send({ topic, messages: [{ partition: 0, value: 'small' }] })
  await producer.disconnect()
  await client.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '4' }] })
  const zero = (await client.fetchTopicOffsets(topic)).find(entry => entry.partition === 0)
  assert.deepStrictEqual([zero.low, zero.high], ['4', '10'])

  const groupId = topic + '-group'
  await client.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '7', metadata: 'note' }] })
  const fetched = await client.fetchOffsets({ groupId, topics: [topic] })
  assert.strictEqual(fetched[0].partitions.find(entry => entry.partition === 0).offset, '7')
  assert((await client.listGroups()).groups.some(group => group.groupId === groupId))
  assert.strictEqual((await client.describeGroups([groupId])).groups[0].state, 'Empty')
  await client.deleteGroups([groupId])
  assert.strictEqual(await failure(client.deleteGroups([groupId])), 'GROUP_ID_NOT_FOUND')

  const cluster = await client.describeCluster()
  assert.deepStrictEqual(cluster.brokers.map(broker => broker.nodeId), [1])
  assert.strictEqual(cluster.controller, 1)
  await client.deleteTopics({ topics: [topic] })
  await eventually(async () =>
    await failure(client.deleteTopics({ topics: [topic] })) === 'UNKNOWN_TOPIC_OR_PARTITION')
  await client.disconnect()
  say({ ok: true })
}

const [command, ...args] = process.argv.slice(2)
const commands = { produce, consume, member, admin }
commands[command](...args).then(() => process.exit(0), error => {
  console.error(error)
  process.exit(1)
})
