// Written by generate.py from Kafka's message schemas; not edited by hand.
use super::schema::{Default::*, Kind::*, Message, field};

/// Records of the metadata log, by api key.
pub(crate) static METADATA: &[Message] = &[
    Message {
        name: "RegisterBrokerRecord",
        api_key: 0,
        versions: (0, 4),
        flexible_from: 0,
        fields: &[
            field("brokerId", (0, 32767), Int32),
            field("isMigratingZkBroker", (2, 32767), Bool),
            field("incarnationId", (0, 32767), Uuid),
            field("brokerEpoch", (0, 32767), Int64),
            field(
                "endPoints",
                (0, 32767),
                Array(&Struct(&[
                    field("name", (0, 32767), Text),
                    field("host", (0, 32767), Text),
                    field("port", (0, 32767), Uint16),
                    field("securityProtocol", (0, 32767), Int16),
                ])),
            ),
            field(
                "features",
                (0, 32767),
                Array(&Struct(&[
                    field("name", (0, 32767), Text),
                    field("minSupportedVersion", (0, 32767), Int16),
                    field("maxSupportedVersion", (0, 32767), Int16),
                ])),
            ),
            field("rack", (0, 32767), Text).nullable((0, 32767)),
            field("fenced", (0, 32767), Bool),
            field("inControlledShutdown", (1, 32767), Bool),
            field("logDirs", (3, 32767), Array(&Uuid)).tagged(0, (3, 32767), Zero),
            field("cordonedLogDirs", (4, 32767), Array(&Uuid))
                .nullable((4, 32767))
                .tagged(1, (4, 32767), Null),
        ],
    },
    Message {
        name: "UnregisterBrokerRecord",
        api_key: 1,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("brokerId", (0, 32767), Int32),
            field("brokerEpoch", (0, 32767), Int64),
        ],
    },
    Message {
        name: "TopicRecord",
        api_key: 2,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("name", (0, 32767), Text),
            field("topicId", (0, 32767), Uuid),
        ],
    },
    Message {
        name: "PartitionRecord",
        api_key: 3,
        versions: (0, 2),
        flexible_from: 0,
        fields: &[
            field("partitionId", (0, 32767), Int32),
            field("topicId", (0, 32767), Uuid),
            field("replicas", (0, 32767), Array(&Int32)),
            field("isr", (0, 32767), Array(&Int32)),
            field("removingReplicas", (0, 32767), Array(&Int32)),
            field("addingReplicas", (0, 32767), Array(&Int32)),
            field("leader", (0, 32767), Int32),
            field("leaderRecoveryState", (0, 32767), Int8).tagged(0, (0, 32767), Number(0)),
            field("leaderEpoch", (0, 32767), Int32),
            field("partitionEpoch", (0, 32767), Int32),
            field("directories", (1, 32767), Array(&Uuid)),
            field("eligibleLeaderReplicas", (2, 32767), Array(&Int32))
                .nullable((2, 32767))
                .tagged(1, (2, 32767), Null),
            field("lastKnownElr", (2, 32767), Array(&Int32))
                .nullable((2, 32767))
                .tagged(2, (2, 32767), Null),
        ],
    },
    Message {
        name: "ConfigRecord",
        api_key: 4,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("resourceType", (0, 32767), Int8),
            field("resourceName", (0, 32767), Text),
            field("name", (0, 32767), Text),
            field("value", (0, 32767), Text).nullable((0, 32767)),
        ],
    },
    Message {
        name: "PartitionChangeRecord",
        api_key: 5,
        versions: (0, 2),
        flexible_from: 0,
        fields: &[
            field("partitionId", (0, 32767), Int32),
            field("topicId", (0, 32767), Uuid),
            field("isr", (0, 32767), Array(&Int32))
                .nullable((0, 32767))
                .tagged(0, (0, 32767), Null),
            field("leader", (0, 32767), Int32).tagged(1, (0, 32767), Number(-2)),
            field("replicas", (0, 32767), Array(&Int32))
                .nullable((0, 32767))
                .tagged(2, (0, 32767), Null),
            field("removingReplicas", (0, 32767), Array(&Int32))
                .nullable((0, 32767))
                .tagged(3, (0, 32767), Null),
            field("addingReplicas", (0, 32767), Array(&Int32))
                .nullable((0, 32767))
                .tagged(4, (0, 32767), Null),
            field("leaderRecoveryState", (0, 32767), Int8).tagged(5, (0, 32767), Number(-1)),
            field("directories", (1, 32767), Array(&Uuid))
                .nullable((1, 32767))
                .tagged(8, (1, 32767), Null),
            field("eligibleLeaderReplicas", (2, 32767), Array(&Int32))
                .nullable((2, 32767))
                .tagged(6, (2, 32767), Null),
            field("lastKnownElr", (2, 32767), Array(&Int32))
                .nullable((2, 32767))
                .tagged(7, (2, 32767), Null),
        ],
    },
    Message {
        name: "FenceBrokerRecord",
        api_key: 7,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("id", (0, 32767), Int32),
            field("epoch", (0, 32767), Int64),
        ],
    },
    Message {
        name: "UnfenceBrokerRecord",
        api_key: 8,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("id", (0, 32767), Int32),
            field("epoch", (0, 32767), Int64),
        ],
    },
    Message {
        name: "RemoveTopicRecord",
        api_key: 9,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field("topicId", (0, 32767), Uuid)],
    },
    Message {
        name: "DelegationTokenRecord",
        api_key: 10,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("owner", (0, 32767), Text),
            field("requester", (0, 32767), Text),
            field("renewers", (0, 32767), Array(&Text)),
            field("issueTimestamp", (0, 32767), Int64),
            field("maxTimestamp", (0, 32767), Int64),
            field("expirationTimestamp", (0, 32767), Int64),
            field("tokenId", (0, 32767), Text),
        ],
    },
    Message {
        name: "UserScramCredentialRecord",
        api_key: 11,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("name", (0, 32767), Text),
            field("mechanism", (0, 32767), Int8),
            field("salt", (0, 32767), Binary),
            field("storedKey", (0, 32767), Binary),
            field("serverKey", (0, 32767), Binary),
            field("iterations", (0, 32767), Int32),
        ],
    },
    Message {
        name: "FeatureLevelRecord",
        api_key: 12,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("name", (0, 32767), Text),
            field("featureLevel", (0, 32767), Int16),
        ],
    },
    Message {
        name: "ClientQuotaRecord",
        api_key: 14,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field(
                "entity",
                (0, 32767),
                Array(&Struct(&[
                    field("entityType", (0, 32767), Text),
                    field("entityName", (0, 32767), Text).nullable((0, 32767)),
                ])),
            ),
            field("key", (0, 32767), Text),
            field("value", (0, 32767), Float64),
            field("remove", (0, 32767), Bool),
        ],
    },
    Message {
        name: "ProducerIdsRecord",
        api_key: 15,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("brokerId", (0, 32767), Int32),
            field("brokerEpoch", (0, 32767), Int64),
            field("nextProducerId", (0, 32767), Int64),
        ],
    },
    Message {
        name: "BrokerRegistrationChangeRecord",
        api_key: 17,
        versions: (0, 3),
        flexible_from: 0,
        fields: &[
            field("brokerId", (0, 32767), Int32),
            field("brokerEpoch", (0, 32767), Int64),
            field("fenced", (0, 32767), Int8).tagged(0, (0, 32767), Zero),
            field("inControlledShutdown", (1, 32767), Int8).tagged(1, (1, 32767), Zero),
            field("logDirs", (2, 32767), Array(&Uuid)).tagged(2, (2, 32767), Zero),
            field("cordonedLogDirs", (3, 32767), Array(&Uuid))
                .nullable((3, 32767))
                .tagged(3, (3, 32767), Null),
        ],
    },
    Message {
        name: "AccessControlEntryRecord",
        api_key: 18,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("id", (0, 32767), Uuid),
            field("resourceType", (0, 32767), Int8),
            field("resourceName", (0, 32767), Text),
            field("patternType", (0, 32767), Int8),
            field("principal", (0, 32767), Text),
            field("host", (0, 32767), Text),
            field("operation", (0, 32767), Int8),
            field("permissionType", (0, 32767), Int8),
        ],
    },
    Message {
        name: "RemoveAccessControlEntryRecord",
        api_key: 19,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field("id", (0, 32767), Uuid)],
    },
    Message {
        name: "NoOpRecord",
        api_key: 20,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[],
    },
    Message {
        name: "ZkMigrationStateRecord",
        api_key: 21,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field("zkMigrationState", (0, 32767), Int8)],
    },
    Message {
        name: "RemoveUserScramCredentialRecord",
        api_key: 22,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("name", (0, 32767), Text),
            field("mechanism", (0, 32767), Int8),
        ],
    },
    Message {
        name: "BeginTransactionRecord",
        api_key: 23,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field("name", (0, 32767), Text)
            .nullable((0, 32767))
            .tagged(0, (0, 32767), Null)],
    },
    Message {
        name: "EndTransactionRecord",
        api_key: 24,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[],
    },
    Message {
        name: "AbortTransactionRecord",
        api_key: 25,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field("reason", (0, 32767), Text)
            .nullable((0, 32767))
            .tagged(0, (0, 32767), Null)],
    },
    Message {
        name: "RemoveDelegationTokenRecord",
        api_key: 26,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field("tokenId", (0, 32767), Text)],
    },
    Message {
        name: "RegisterControllerRecord",
        api_key: 27,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("controllerId", (0, 32767), Int32),
            field("incarnationId", (0, 32767), Uuid),
            field("zkMigrationReady", (0, 32767), Bool),
            field(
                "endPoints",
                (0, 32767),
                Array(&Struct(&[
                    field("name", (0, 32767), Text),
                    field("host", (0, 32767), Text),
                    field("port", (0, 32767), Uint16),
                    field("securityProtocol", (0, 32767), Int16),
                ])),
            ),
            field(
                "features",
                (0, 32767),
                Array(&Struct(&[
                    field("name", (0, 32767), Text),
                    field("minSupportedVersion", (0, 32767), Int16),
                    field("maxSupportedVersion", (0, 32767), Int16),
                ])),
            ),
        ],
    },
    Message {
        name: "ClearElrRecord",
        api_key: 28,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field("topicName", (0, 32767), Text)],
    },
    Message {
        name: "UnregisterControllerRecord",
        api_key: 29,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field("controllerId", (0, 32767), Int32)],
    },
];

/// Keys of `__consumer_offsets`.
pub(crate) static GROUP_KEYS: &[Message] = &[
    Message {
        name: "LegacyOffsetCommitKey",
        api_key: 0,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("group", (0, 0), Text),
            field("topic", (0, 0), Text),
            field("partition", (0, 0), Int32),
        ],
    },
    Message {
        name: "OffsetCommitKey",
        api_key: 1,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("group", (0, 0), Text),
            field("topic", (0, 0), Text),
            field("partition", (0, 0), Int32),
        ],
    },
    Message {
        name: "GroupMetadataKey",
        api_key: 2,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("group", (0, 0), Text)],
    },
    Message {
        name: "ConsumerGroupMetadataKey",
        api_key: 3,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("groupId", (0, 0), Text)],
    },
    Message {
        name: "ConsumerGroupPartitionMetadataKey",
        api_key: 4,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("groupId", (0, 0), Text)],
    },
    Message {
        name: "ConsumerGroupMemberMetadataKey",
        api_key: 5,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("memberId", (0, 0), Text),
        ],
    },
    Message {
        name: "ConsumerGroupTargetAssignmentMetadataKey",
        api_key: 6,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("groupId", (0, 0), Text)],
    },
    Message {
        name: "ConsumerGroupTargetAssignmentMemberKey",
        api_key: 7,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("memberId", (0, 0), Text),
        ],
    },
    Message {
        name: "ConsumerGroupCurrentMemberAssignmentKey",
        api_key: 8,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("memberId", (0, 0), Text),
        ],
    },
    Message {
        name: "ShareGroupMemberMetadataKey",
        api_key: 10,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("memberId", (0, 0), Text),
        ],
    },
    Message {
        name: "ShareGroupMetadataKey",
        api_key: 11,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("groupId", (0, 0), Text)],
    },
    Message {
        name: "ShareGroupTargetAssignmentMetadataKey",
        api_key: 12,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("groupId", (0, 0), Text)],
    },
    Message {
        name: "ShareGroupTargetAssignmentMemberKey",
        api_key: 13,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("memberId", (0, 0), Text),
        ],
    },
    Message {
        name: "ShareGroupCurrentMemberAssignmentKey",
        api_key: 14,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("memberId", (0, 0), Text),
        ],
    },
    Message {
        name: "ShareGroupStatePartitionMetadataKey",
        api_key: 15,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("groupId", (0, 0), Text)],
    },
    Message {
        name: "ConsumerGroupRegularExpressionKey",
        api_key: 16,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("regularExpression", (0, 0), Text),
        ],
    },
    Message {
        name: "StreamsGroupMetadataKey",
        api_key: 17,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("groupId", (0, 0), Text)],
    },
    Message {
        name: "StreamsGroupMemberMetadataKey",
        api_key: 19,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("memberId", (0, 0), Text),
        ],
    },
    Message {
        name: "StreamsGroupTargetAssignmentMetadataKey",
        api_key: 20,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("groupId", (0, 0), Text)],
    },
    Message {
        name: "StreamsGroupTargetAssignmentMemberKey",
        api_key: 21,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("memberId", (0, 0), Text),
        ],
    },
    Message {
        name: "StreamsGroupCurrentMemberAssignmentKey",
        api_key: 22,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("memberId", (0, 0), Text),
        ],
    },
    Message {
        name: "StreamsGroupTopologyKey",
        api_key: 23,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[field("groupId", (0, 0), Text)],
    },
];

/// Values of `__consumer_offsets`.
pub(crate) static GROUP_VALUES: &[Message] = &[
    Message {
        name: "LegacyOffsetCommitValue",
        api_key: 0,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("offset", (0, 0), Int64),
            field("metadata", (0, 0), Text),
            field("commitTimestamp", (0, 0), Int64),
        ],
    },
    Message {
        name: "OffsetCommitValue",
        api_key: 1,
        versions: (0, 4),
        flexible_from: 4,
        fields: &[
            field("offset", (0, 32767), Int64),
            field("leaderEpoch", (3, 32767), Int32),
            field("metadata", (0, 32767), Text),
            field("commitTimestamp", (0, 32767), Int64),
            field("expireTimestamp", (1, 1), Int64),
            field("topicId", (4, 32767), Uuid).tagged(0, (4, 32767), Zero),
        ],
    },
    Message {
        name: "GroupMetadataValue",
        api_key: 2,
        versions: (0, 4),
        flexible_from: 4,
        fields: &[
            field("protocolType", (0, 32767), Text),
            field("generation", (0, 32767), Int32),
            field("protocol", (0, 32767), Text).nullable((0, 32767)),
            field("leader", (0, 32767), Text).nullable((0, 32767)),
            field("currentStateTimestamp", (2, 32767), Int64),
            field(
                "members",
                (0, 32767),
                Array(&Struct(&[
                    field("memberId", (0, 32767), Text),
                    field("groupInstanceId", (3, 32767), Text).nullable((3, 32767)),
                    field("clientId", (0, 32767), Text),
                    field("clientHost", (0, 32767), Text),
                    field("rebalanceTimeout", (1, 32767), Int32),
                    field("sessionTimeout", (0, 32767), Int32),
                    field("subscription", (0, 32767), Binary),
                    field("assignment", (0, 32767), Binary),
                ])),
            ),
        ],
    },
    Message {
        name: "ConsumerGroupMetadataValue",
        api_key: 3,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("epoch", (0, 32767), Int32),
            field("metadataHash", (0, 32767), Int64).tagged(0, (0, 32767), Number(0)),
        ],
    },
    Message {
        name: "ConsumerGroupPartitionMetadataValue",
        api_key: 4,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field(
            "topics",
            (0, 32767),
            Array(&Struct(&[
                field("topicId", (0, 32767), Uuid),
                field("topicName", (0, 32767), Text),
                field("numPartitions", (0, 32767), Int32),
                field(
                    "partitionMetadata",
                    (0, 32767),
                    Array(&Struct(&[
                        field("partition", (0, 32767), Int32),
                        field("racks", (0, 32767), Array(&Text)),
                    ])),
                ),
            ])),
        )],
    },
    Message {
        name: "ConsumerGroupMemberMetadataValue",
        api_key: 5,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("instanceId", (0, 32767), Text).nullable((0, 32767)),
            field("rackId", (0, 32767), Text).nullable((0, 32767)),
            field("clientId", (0, 32767), Text),
            field("clientHost", (0, 32767), Text),
            field("subscribedTopicNames", (0, 32767), Array(&Text)),
            field("subscribedTopicRegex", (0, 32767), Text).nullable((0, 32767)),
            field("rebalanceTimeoutMs", (0, 32767), Int32),
            field("serverAssignor", (0, 32767), Text).nullable((0, 32767)),
            field(
                "classicMemberMetadata",
                (0, 32767),
                Struct(&[
                    field("sessionTimeoutMs", (0, 32767), Int32),
                    field(
                        "supportedProtocols",
                        (0, 32767),
                        Array(&Struct(&[
                            field("name", (0, 32767), Text),
                            field("metadata", (0, 32767), Binary),
                        ])),
                    ),
                ]),
            )
            .nullable((0, 32767))
            .tagged(0, (0, 32767), Zero),
        ],
    },
    Message {
        name: "ConsumerGroupTargetAssignmentMetadataValue",
        api_key: 6,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("assignmentEpoch", (0, 32767), Int32),
            field("assignmentTimestamp", (0, 32767), Int64).tagged(0, (0, 32767), Number(0)),
        ],
    },
    Message {
        name: "ConsumerGroupTargetAssignmentMemberValue",
        api_key: 7,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field(
            "topicPartitions",
            (0, 32767),
            Array(&Struct(&[
                field("topicId", (0, 32767), Uuid),
                field("partitions", (0, 32767), Array(&Int32)),
            ])),
        )],
    },
    Message {
        name: "ConsumerGroupCurrentMemberAssignmentValue",
        api_key: 8,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("memberEpoch", (0, 32767), Int32),
            field("previousMemberEpoch", (0, 32767), Int32),
            field("state", (0, 32767), Int8),
            field(
                "assignedPartitions",
                (0, 32767),
                Array(&Struct(&[
                    field("topicId", (0, 32767), Uuid),
                    field("partitions", (0, 32767), Array(&Int32)),
                    field("assignmentEpochs", (0, 32767), Array(&Int32))
                        .nullable((0, 32767))
                        .tagged(0, (0, 32767), Zero),
                ])),
            ),
            field(
                "partitionsPendingRevocation",
                (0, 32767),
                Array(&Struct(&[
                    field("topicId", (0, 32767), Uuid),
                    field("partitions", (0, 32767), Array(&Int32)),
                    field("assignmentEpochs", (0, 32767), Array(&Int32))
                        .nullable((0, 32767))
                        .tagged(0, (0, 32767), Zero),
                ])),
            ),
        ],
    },
    Message {
        name: "ShareGroupMemberMetadataValue",
        api_key: 10,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("rackId", (0, 32767), Text).nullable((0, 32767)),
            field("clientId", (0, 32767), Text),
            field("clientHost", (0, 32767), Text),
            field("subscribedTopicNames", (0, 32767), Array(&Text)),
        ],
    },
    Message {
        name: "ShareGroupMetadataValue",
        api_key: 11,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("epoch", (0, 32767), Int32),
            field("metadataHash", (0, 32767), Int64),
        ],
    },
    Message {
        name: "ShareGroupTargetAssignmentMetadataValue",
        api_key: 12,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("assignmentEpoch", (0, 32767), Int32),
            field("assignmentTimestamp", (0, 32767), Int64).tagged(0, (0, 32767), Number(0)),
        ],
    },
    Message {
        name: "ShareGroupTargetAssignmentMemberValue",
        api_key: 13,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[field(
            "topicPartitions",
            (0, 32767),
            Array(&Struct(&[
                field("topicId", (0, 32767), Uuid),
                field("partitions", (0, 32767), Array(&Int32)),
            ])),
        )],
    },
    Message {
        name: "ShareGroupCurrentMemberAssignmentValue",
        api_key: 14,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("memberEpoch", (0, 32767), Int32),
            field("previousMemberEpoch", (0, 32767), Int32),
            field("state", (0, 32767), Int8),
            field(
                "assignedPartitions",
                (0, 32767),
                Array(&Struct(&[
                    field("topicId", (0, 32767), Uuid),
                    field("partitions", (0, 32767), Array(&Int32)),
                ])),
            ),
        ],
    },
    Message {
        name: "ShareGroupStatePartitionMetadataValue",
        api_key: 15,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field(
                "initializingTopics",
                (0, 32767),
                Array(&Struct(&[
                    field("topicId", (0, 32767), Uuid),
                    field("topicName", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                ])),
            ),
            field(
                "initializedTopics",
                (0, 32767),
                Array(&Struct(&[
                    field("topicId", (0, 32767), Uuid),
                    field("topicName", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                ])),
            ),
            field(
                "deletingTopics",
                (0, 32767),
                Array(&Struct(&[
                    field("topicId", (0, 32767), Uuid),
                    field("topicName", (0, 32767), Text),
                ])),
            ),
        ],
    },
    Message {
        name: "ConsumerGroupRegularExpressionValue",
        api_key: 16,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("topics", (0, 32767), Array(&Text)),
            field("version", (0, 32767), Int64),
            field("timestamp", (0, 32767), Int64),
        ],
    },
    Message {
        name: "StreamsGroupMetadataValue",
        api_key: 17,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("epoch", (0, 32767), Int32),
            field("metadataHash", (0, 32767), Int64),
            field("validatedTopologyEpoch", (0, 32767), Int32).tagged(0, (0, 32767), Number(-1)),
            field(
                "lastAssignmentConfigs",
                (0, 32767),
                Array(&Struct(&[
                    field("key", (0, 32767), Text),
                    field("value", (0, 32767), Text),
                ])),
            )
            .nullable((0, 32767))
            .tagged(1, (0, 32767), Zero),
            field("storedDescriptionTopologyEpoch", (0, 32767), Int32).tagged(
                2,
                (0, 32767),
                Number(-1),
            ),
            field("failedDescriptionTopologyEpoch", (0, 32767), Int32).tagged(
                3,
                (0, 32767),
                Number(-1),
            ),
        ],
    },
    Message {
        name: "StreamsGroupMemberMetadataValue",
        api_key: 19,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("instanceId", (0, 32767), Text).nullable((0, 32767)),
            field("rackId", (0, 32767), Text).nullable((0, 32767)),
            field("clientId", (0, 32767), Text),
            field("clientHost", (0, 32767), Text),
            field("rebalanceTimeoutMs", (0, 32767), Int32),
            field("topologyEpoch", (0, 32767), Int32),
            field("processId", (0, 32767), Text),
            field(
                "userEndpoint",
                (0, 32767),
                Struct(&[
                    field("host", (0, 32767), Text),
                    field("port", (0, 32767), Uint16),
                ]),
            )
            .nullable((0, 32767)),
            field(
                "clientTags",
                (0, 32767),
                Array(&Struct(&[
                    field("key", (0, 32767), Text),
                    field("value", (0, 32767), Text),
                ])),
            ),
        ],
    },
    Message {
        name: "StreamsGroupTargetAssignmentMetadataValue",
        api_key: 20,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("assignmentEpoch", (0, 32767), Int32),
            field("assignmentTimestamp", (0, 32767), Int64).tagged(0, (0, 32767), Number(0)),
        ],
    },
    Message {
        name: "StreamsGroupTargetAssignmentMemberValue",
        api_key: 21,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field(
                "activeTasks",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                ])),
            ),
            field(
                "standbyTasks",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                ])),
            ),
            field(
                "warmupTasks",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                ])),
            ),
        ],
    },
    Message {
        name: "StreamsGroupCurrentMemberAssignmentValue",
        api_key: 22,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("memberEpoch", (0, 32767), Int32),
            field("previousMemberEpoch", (0, 32767), Int32),
            field("state", (0, 32767), Int8),
            field(
                "activeTasks",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                    field("assignmentEpochs", (0, 32767), Array(&Int32))
                        .nullable((0, 32767))
                        .tagged(0, (0, 32767), Zero),
                ])),
            ),
            field(
                "standbyTasks",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                    field("assignmentEpochs", (0, 32767), Array(&Int32))
                        .nullable((0, 32767))
                        .tagged(0, (0, 32767), Zero),
                ])),
            ),
            field(
                "warmupTasks",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                    field("assignmentEpochs", (0, 32767), Array(&Int32))
                        .nullable((0, 32767))
                        .tagged(0, (0, 32767), Zero),
                ])),
            ),
            field(
                "activeTasksPendingRevocation",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                    field("assignmentEpochs", (0, 32767), Array(&Int32))
                        .nullable((0, 32767))
                        .tagged(0, (0, 32767), Zero),
                ])),
            ),
            field(
                "standbyTasksPendingRevocation",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                    field("assignmentEpochs", (0, 32767), Array(&Int32))
                        .nullable((0, 32767))
                        .tagged(0, (0, 32767), Zero),
                ])),
            ),
            field(
                "warmupTasksPendingRevocation",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("partitions", (0, 32767), Array(&Int32)),
                    field("assignmentEpochs", (0, 32767), Array(&Int32))
                        .nullable((0, 32767))
                        .tagged(0, (0, 32767), Zero),
                ])),
            ),
        ],
    },
    Message {
        name: "StreamsGroupTopologyValue",
        api_key: 23,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("epoch", (0, 32767), Int32),
            field(
                "subtopologies",
                (0, 32767),
                Array(&Struct(&[
                    field("subtopologyId", (0, 32767), Text),
                    field("sourceTopics", (0, 32767), Array(&Text)),
                    field("sourceTopicRegex", (0, 32767), Array(&Text)),
                    field(
                        "stateChangelogTopics",
                        (0, 32767),
                        Array(&Struct(&[
                            field("name", (0, 32767), Text),
                            field("partitions", (0, 32767), Int32),
                            field("replicationFactor", (0, 32767), Int16),
                            field(
                                "topicConfigs",
                                (0, 32767),
                                Array(&Struct(&[
                                    field("key", (0, 32767), Text),
                                    field("value", (0, 32767), Text),
                                ])),
                            ),
                        ])),
                    ),
                    field("repartitionSinkTopics", (0, 32767), Array(&Text)),
                    field(
                        "repartitionSourceTopics",
                        (0, 32767),
                        Array(&Struct(&[
                            field("name", (0, 32767), Text),
                            field("partitions", (0, 32767), Int32),
                            field("replicationFactor", (0, 32767), Int16),
                            field(
                                "topicConfigs",
                                (0, 32767),
                                Array(&Struct(&[
                                    field("key", (0, 32767), Text),
                                    field("value", (0, 32767), Text),
                                ])),
                            ),
                        ])),
                    ),
                    field(
                        "copartitionGroups",
                        (0, 32767),
                        Array(&Struct(&[
                            field("sourceTopics", (0, 32767), Array(&Int16)),
                            field("sourceTopicRegex", (0, 32767), Array(&Int16)),
                            field("repartitionSourceTopics", (0, 32767), Array(&Int16)),
                        ])),
                    ),
                ])),
            ),
        ],
    },
];

/// Keys of `__transaction_state`.
pub(crate) static TRANSACTION_KEYS: &[Message] = &[Message {
    name: "TransactionLogKey",
    api_key: 0,
    versions: (0, 0),
    flexible_from: 32767,
    fields: &[field("transactionalId", (0, 0), Text)],
}];

/// Values of `__transaction_state`.
pub(crate) static TRANSACTION_VALUES: &[Message] = &[Message {
    name: "TransactionLogValue",
    api_key: 0,
    versions: (0, 1),
    flexible_from: 1,
    fields: &[
        field("producerId", (0, 32767), Int64),
        field("previousProducerId", (0, 32767), Int64).tagged(0, (1, 32767), Number(-1)),
        field("nextProducerId", (0, 32767), Int64).tagged(1, (1, 32767), Number(-1)),
        field("producerEpoch", (0, 32767), Int16),
        field("nextProducerEpoch", (0, 32767), Int16).tagged(3, (1, 32767), Number(-1)),
        field("transactionTimeoutMs", (0, 32767), Int32),
        field("transactionStatus", (0, 32767), Int8),
        field(
            "transactionPartitions",
            (0, 32767),
            Array(&Struct(&[
                field("topic", (0, 32767), Text),
                field("partitionIds", (0, 32767), Array(&Int32)),
            ])),
        )
        .nullable((0, 32767)),
        field("transactionLastUpdateTimestampMs", (0, 32767), Int64),
        field("transactionStartTimestampMs", (0, 32767), Int64),
        field("clientTransactionVersion", (0, 32767), Int16).tagged(2, (1, 32767), Number(0)),
    ],
}];

/// Keys of `__share_group_state`.
pub(crate) static SHARE_KEYS: &[Message] = &[
    Message {
        name: "ShareSnapshotKey",
        api_key: 0,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("topicId", (0, 0), Uuid),
            field("partition", (0, 0), Int32),
        ],
    },
    Message {
        name: "ShareUpdateKey",
        api_key: 1,
        versions: (0, 0),
        flexible_from: 32767,
        fields: &[
            field("groupId", (0, 0), Text),
            field("topicId", (0, 0), Uuid),
            field("partition", (0, 0), Int32),
        ],
    },
];

/// Values of `__share_group_state`.
pub(crate) static SHARE_VALUES: &[Message] = &[
    Message {
        name: "ShareSnapshotValue",
        api_key: 0,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("snapshotEpoch", (0, 32767), Int32),
            field("stateEpoch", (0, 32767), Int32),
            field("leaderEpoch", (0, 32767), Int32),
            field("startOffset", (0, 32767), Int64),
            field("deliveryCompleteCount", (0, 32767), Int32).tagged(0, (0, 32767), Number(-1)),
            field("createTimestamp", (0, 32767), Int64),
            field("writeTimestamp", (0, 32767), Int64),
            field(
                "stateBatches",
                (0, 32767),
                Array(&Struct(&[
                    field("firstOffset", (0, 32767), Int64),
                    field("lastOffset", (0, 32767), Int64),
                    field("deliveryState", (0, 32767), Int8),
                    field("deliveryCount", (0, 32767), Int16),
                ])),
            ),
        ],
    },
    Message {
        name: "ShareUpdateValue",
        api_key: 1,
        versions: (0, 0),
        flexible_from: 0,
        fields: &[
            field("snapshotEpoch", (0, 32767), Int32),
            field("leaderEpoch", (0, 32767), Int32),
            field("startOffset", (0, 32767), Int64),
            field("deliveryCompleteCount", (0, 32767), Int32).tagged(0, (0, 32767), Number(-1)),
            field(
                "stateBatches",
                (0, 32767),
                Array(&Struct(&[
                    field("firstOffset", (0, 32767), Int64),
                    field("lastOffset", (0, 32767), Int64),
                    field("deliveryState", (0, 32767), Int8),
                    field("deliveryCount", (0, 32767), Int16),
                ])),
            ),
        ],
    },
];

/// `LeaderChangeMessage`.
pub(crate) static LEADER_CHANGE: Message = Message {
    name: "LeaderChangeMessage",
    api_key: -1,
    versions: (0, 1),
    flexible_from: 0,
    fields: &[
        field("version", (0, 32767), Int16),
        field("leaderId", (0, 32767), Int32),
        field(
            "voters",
            (0, 32767),
            Array(&Struct(&[
                field("voterId", (0, 32767), Int32),
                field("voterDirectoryId", (1, 32767), Uuid),
            ])),
        ),
        field(
            "grantingVoters",
            (0, 32767),
            Array(&Struct(&[
                field("voterId", (0, 32767), Int32),
                field("voterDirectoryId", (1, 32767), Uuid),
            ])),
        ),
    ],
};

/// `SnapshotHeaderRecord`.
pub(crate) static SNAPSHOT_HEADER: Message = Message {
    name: "SnapshotHeaderRecord",
    api_key: -1,
    versions: (0, 0),
    flexible_from: 0,
    fields: &[
        field("version", (0, 32767), Int16),
        field("lastContainedLogTimestamp", (0, 32767), Int64),
    ],
};

/// `SnapshotFooterRecord`.
pub(crate) static SNAPSHOT_FOOTER: Message = Message {
    name: "SnapshotFooterRecord",
    api_key: -1,
    versions: (0, 0),
    flexible_from: 0,
    fields: &[field("version", (0, 32767), Int16)],
};

/// `KRaftVersionRecord`.
pub(crate) static KRAFT_VERSION: Message = Message {
    name: "KRaftVersionRecord",
    api_key: -1,
    versions: (0, 0),
    flexible_from: 0,
    fields: &[
        field("version", (0, 32767), Int16),
        field("kRaftVersion", (0, 32767), Int16),
    ],
};

/// `VotersRecord`.
pub(crate) static KRAFT_VOTERS: Message = Message {
    name: "VotersRecord",
    api_key: -1,
    versions: (0, 0),
    flexible_from: 0,
    fields: &[
        field("version", (0, 32767), Int16),
        field(
            "voters",
            (0, 32767),
            Array(&Struct(&[
                field("voterId", (0, 32767), Int32),
                field("voterDirectoryId", (0, 32767), Uuid),
                field(
                    "endpoints",
                    (0, 32767),
                    Array(&Struct(&[
                        field("name", (0, 32767), Text),
                        field("host", (0, 32767), Text),
                        field("port", (0, 32767), Uint16),
                    ])),
                ),
                field(
                    "kRaftVersionFeature",
                    (0, 32767),
                    Struct(&[
                        field("minSupportedVersion", (0, 32767), Int16),
                        field("maxSupportedVersion", (0, 32767), Int16),
                    ]),
                ),
            ])),
        ),
    ],
};

/// `ConsumerProtocolSubscription`.
pub(crate) static SUBSCRIPTION: Message = Message {
    name: "ConsumerProtocolSubscription",
    api_key: -1,
    versions: (0, 3),
    flexible_from: 32767,
    fields: &[
        field("topics", (0, 32767), Array(&Text)),
        field("userData", (0, 32767), Binary).nullable((0, 32767)),
        field(
            "ownedPartitions",
            (1, 32767),
            Array(&Struct(&[
                field("topic", (1, 32767), Text),
                field("partitions", (1, 32767), Array(&Int32)),
            ])),
        ),
        field("generationId", (2, 32767), Int32),
        field("rackId", (3, 32767), Text).nullable((3, 32767)),
    ],
};

/// `ConsumerProtocolAssignment`.
pub(crate) static ASSIGNMENT: Message = Message {
    name: "ConsumerProtocolAssignment",
    api_key: -1,
    versions: (0, 3),
    flexible_from: 32767,
    fields: &[
        field(
            "assignedPartitions",
            (0, 32767),
            Array(&Struct(&[
                field("topic", (0, 32767), Text),
                field("partitions", (0, 32767), Array(&Int32)),
            ])),
        ),
        field("userData", (0, 32767), Binary).nullable((0, 32767)),
    ],
};
