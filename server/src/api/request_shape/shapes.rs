// Written by generate.py from Kafka's message schemas; not edited by hand.
use super::{RequestShape, Shape::*, always, between, from, request, tagged};

/// Every request that a broker or a controller may be sent, by ascending api key.
pub(super) static SHAPES: &[RequestShape] = &[
    // ProduceRequest
    request(
        0,
        9,
        &[
            from(3, Text),
            always(Fixed(2)),
            always(Fixed(4)),
            always(Array(&Struct(&[
                between(0, 12, Text),
                from(13, Fixed(16)),
                always(Array(&Struct(&[always(Fixed(4)), always(Binary)]))),
            ]))),
        ],
    ),
    // FetchRequest
    request(
        1,
        12,
        &[
            tagged(0, Text),
            between(0, 14, Fixed(4)),
            tagged(1, Struct(&[from(15, Fixed(4)), from(15, Fixed(8))])),
            always(Fixed(4)),
            always(Fixed(4)),
            from(3, Fixed(4)),
            from(4, Fixed(1)),
            from(7, Fixed(4)),
            from(7, Fixed(4)),
            always(Array(&Struct(&[
                between(0, 12, Text),
                from(13, Fixed(16)),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    from(9, Fixed(4)),
                    always(Fixed(8)),
                    from(12, Fixed(4)),
                    from(5, Fixed(8)),
                    always(Fixed(4)),
                    tagged(0, Fixed(16)),
                    tagged(1, Fixed(8)),
                ]))),
            ]))),
            from(
                7,
                Array(&Struct(&[
                    between(7, 12, Text),
                    from(13, Fixed(16)),
                    from(7, Array(&Fixed(4))),
                ])),
            ),
            from(11, Text),
        ],
    ),
    // ListOffsetsRequest
    request(
        2,
        6,
        &[
            always(Fixed(4)),
            from(2, Fixed(1)),
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    from(4, Fixed(4)),
                    always(Fixed(8)),
                ]))),
            ]))),
            from(10, Fixed(4)),
        ],
    ),
    // MetadataRequest
    request(
        3,
        9,
        &[
            always(Array(&Struct(&[from(10, Fixed(16)), always(Text)]))),
            from(4, Fixed(1)),
            between(8, 10, Fixed(1)),
            from(8, Fixed(1)),
        ],
    ),
    // OffsetCommitRequest
    request(
        8,
        8,
        &[
            always(Text),
            from(1, Fixed(4)),
            from(1, Text),
            from(7, Text),
            between(2, 4, Fixed(8)),
            always(Array(&Struct(&[
                between(0, 9, Text),
                from(10, Fixed(16)),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Fixed(8)),
                    from(6, Fixed(4)),
                    always(Text),
                ]))),
            ]))),
        ],
    ),
    // OffsetFetchRequest
    request(
        9,
        6,
        &[
            between(0, 7, Text),
            between(
                0,
                7,
                Array(&Struct(&[
                    between(0, 7, Text),
                    between(0, 7, Array(&Fixed(4))),
                ])),
            ),
            from(
                8,
                Array(&Struct(&[
                    from(8, Text),
                    from(9, Text),
                    from(9, Fixed(4)),
                    from(
                        8,
                        Array(&Struct(&[
                            between(8, 9, Text),
                            from(10, Fixed(16)),
                            from(8, Array(&Fixed(4))),
                        ])),
                    ),
                ])),
            ),
            from(7, Fixed(1)),
        ],
    ),
    // FindCoordinatorRequest
    request(
        10,
        3,
        &[
            between(0, 3, Text),
            from(1, Fixed(1)),
            from(4, Array(&Text)),
        ],
    ),
    // JoinGroupRequest
    request(
        11,
        6,
        &[
            always(Text),
            always(Fixed(4)),
            from(1, Fixed(4)),
            always(Text),
            from(5, Text),
            always(Text),
            always(Array(&Struct(&[always(Text), always(Binary)]))),
            from(8, Text),
        ],
    ),
    // HeartbeatRequest
    request(
        12,
        4,
        &[always(Text), always(Fixed(4)), always(Text), from(3, Text)],
    ),
    // LeaveGroupRequest
    request(
        13,
        4,
        &[
            always(Text),
            between(0, 2, Text),
            from(
                3,
                Array(&Struct(&[from(3, Text), from(3, Text), from(5, Text)])),
            ),
        ],
    ),
    // SyncGroupRequest
    request(
        14,
        4,
        &[
            always(Text),
            always(Fixed(4)),
            always(Text),
            from(3, Text),
            from(5, Text),
            from(5, Text),
            always(Array(&Struct(&[always(Text), always(Binary)]))),
        ],
    ),
    // DescribeGroupsRequest
    request(15, 5, &[always(Array(&Text)), from(3, Fixed(1))]),
    // ListGroupsRequest
    request(16, 3, &[from(4, Array(&Text)), from(5, Array(&Text))]),
    // SaslHandshakeRequest
    request(17, 32767, &[always(Text)]),
    // ApiVersionsRequest
    request(
        18,
        3,
        &[
            from(3, Text),
            from(3, Text),
            from(5, Text),
            from(5, Fixed(4)),
        ],
    ),
    // CreateTopicsRequest
    request(
        19,
        5,
        &[
            always(Array(&Struct(&[
                always(Text),
                always(Fixed(4)),
                always(Fixed(2)),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Array(&Fixed(4))),
                ]))),
                always(Array(&Struct(&[always(Text), always(Text)]))),
            ]))),
            always(Fixed(4)),
            from(1, Fixed(1)),
        ],
    ),
    // DeleteTopicsRequest
    request(
        20,
        4,
        &[
            from(6, Array(&Struct(&[from(6, Text), from(6, Fixed(16))]))),
            between(0, 5, Array(&Text)),
            always(Fixed(4)),
        ],
    ),
    // DeleteRecordsRequest
    request(
        21,
        2,
        &[
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[always(Fixed(4)), always(Fixed(8))]))),
            ]))),
            always(Fixed(4)),
        ],
    ),
    // InitProducerIdRequest
    request(
        22,
        2,
        &[
            always(Text),
            always(Fixed(4)),
            from(3, Fixed(8)),
            from(3, Fixed(2)),
            from(6, Fixed(1)),
            from(6, Fixed(1)),
        ],
    ),
    // OffsetForLeaderEpochRequest
    request(
        23,
        4,
        &[
            from(3, Fixed(4)),
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    from(2, Fixed(4)),
                    always(Fixed(4)),
                ]))),
            ]))),
        ],
    ),
    // AddPartitionsToTxnRequest
    request(
        24,
        3,
        &[
            from(
                4,
                Array(&Struct(&[
                    from(4, Text),
                    from(4, Fixed(8)),
                    from(4, Fixed(2)),
                    from(4, Fixed(1)),
                    from(4, Array(&Struct(&[always(Text), always(Array(&Fixed(4)))]))),
                ])),
            ),
            between(0, 3, Text),
            between(0, 3, Fixed(8)),
            between(0, 3, Fixed(2)),
            between(
                0,
                3,
                Array(&Struct(&[always(Text), always(Array(&Fixed(4)))])),
            ),
        ],
    ),
    // AddOffsetsToTxnRequest
    request(
        25,
        3,
        &[
            always(Text),
            always(Fixed(8)),
            always(Fixed(2)),
            always(Text),
        ],
    ),
    // EndTxnRequest
    request(
        26,
        3,
        &[
            always(Text),
            always(Fixed(8)),
            always(Fixed(2)),
            always(Fixed(1)),
        ],
    ),
    // WriteTxnMarkersRequest
    request(
        27,
        1,
        &[always(Array(&Struct(&[
            always(Fixed(8)),
            always(Fixed(2)),
            always(Fixed(1)),
            always(Array(&Struct(&[always(Text), always(Array(&Fixed(4)))]))),
            always(Fixed(4)),
            from(2, Fixed(1)),
        ])))],
    ),
    // TxnOffsetCommitRequest
    request(
        28,
        3,
        &[
            always(Text),
            always(Text),
            always(Fixed(8)),
            always(Fixed(2)),
            from(3, Fixed(4)),
            from(3, Text),
            from(3, Text),
            always(Array(&Struct(&[
                between(0, 5, Text),
                from(6, Fixed(16)),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Fixed(8)),
                    from(2, Fixed(4)),
                    always(Text),
                ]))),
            ]))),
        ],
    ),
    // DescribeAclsRequest
    request(
        29,
        2,
        &[
            always(Fixed(1)),
            always(Text),
            from(1, Fixed(1)),
            always(Text),
            always(Text),
            always(Fixed(1)),
            always(Fixed(1)),
        ],
    ),
    // CreateAclsRequest
    request(
        30,
        2,
        &[always(Array(&Struct(&[
            always(Fixed(1)),
            always(Text),
            from(1, Fixed(1)),
            always(Text),
            always(Text),
            always(Fixed(1)),
            always(Fixed(1)),
        ])))],
    ),
    // DeleteAclsRequest
    request(
        31,
        2,
        &[always(Array(&Struct(&[
            always(Fixed(1)),
            always(Text),
            from(1, Fixed(1)),
            always(Text),
            always(Text),
            always(Fixed(1)),
            always(Fixed(1)),
        ])))],
    ),
    // DescribeConfigsRequest
    request(
        32,
        4,
        &[
            always(Array(&Struct(&[
                always(Fixed(1)),
                always(Text),
                always(Array(&Text)),
            ]))),
            from(1, Fixed(1)),
            from(3, Fixed(1)),
        ],
    ),
    // AlterConfigsRequest
    request(
        33,
        2,
        &[
            always(Array(&Struct(&[
                always(Fixed(1)),
                always(Text),
                always(Array(&Struct(&[always(Text), always(Text)]))),
            ]))),
            always(Fixed(1)),
        ],
    ),
    // AlterReplicaLogDirsRequest
    request(
        34,
        2,
        &[always(Array(&Struct(&[
            always(Text),
            always(Array(&Struct(&[always(Text), always(Array(&Fixed(4)))]))),
        ])))],
    ),
    // DescribeLogDirsRequest
    request(
        35,
        2,
        &[always(Array(&Struct(&[
            always(Text),
            always(Array(&Fixed(4))),
        ])))],
    ),
    // SaslAuthenticateRequest
    request(36, 2, &[always(Binary)]),
    // CreatePartitionsRequest
    request(
        37,
        2,
        &[
            always(Array(&Struct(&[
                always(Text),
                always(Fixed(4)),
                always(Array(&Struct(&[always(Array(&Fixed(4)))]))),
            ]))),
            always(Fixed(4)),
            always(Fixed(1)),
        ],
    ),
    // CreateDelegationTokenRequest
    request(
        38,
        2,
        &[
            from(3, Text),
            from(3, Text),
            always(Array(&Struct(&[always(Text), always(Text)]))),
            always(Fixed(8)),
        ],
    ),
    // RenewDelegationTokenRequest
    request(39, 2, &[always(Binary), always(Fixed(8))]),
    // ExpireDelegationTokenRequest
    request(40, 2, &[always(Binary), always(Fixed(8))]),
    // DescribeDelegationTokenRequest
    request(
        41,
        2,
        &[always(Array(&Struct(&[always(Text), always(Text)])))],
    ),
    // DeleteGroupsRequest
    request(42, 2, &[always(Array(&Text))]),
    // ElectLeadersRequest
    request(
        43,
        2,
        &[
            from(1, Fixed(1)),
            always(Array(&Struct(&[always(Text), always(Array(&Fixed(4)))]))),
            always(Fixed(4)),
        ],
    ),
    // IncrementalAlterConfigsRequest
    request(
        44,
        1,
        &[
            always(Array(&Struct(&[
                always(Fixed(1)),
                always(Text),
                always(Array(&Struct(&[
                    always(Text),
                    always(Fixed(1)),
                    always(Text),
                ]))),
            ]))),
            always(Fixed(1)),
        ],
    ),
    // AlterPartitionReassignmentsRequest
    request(
        45,
        0,
        &[
            always(Fixed(4)),
            from(1, Fixed(1)),
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Array(&Fixed(4))),
                ]))),
            ]))),
        ],
    ),
    // ListPartitionReassignmentsRequest
    request(
        46,
        0,
        &[
            always(Fixed(4)),
            always(Array(&Struct(&[always(Text), always(Array(&Fixed(4)))]))),
        ],
    ),
    // OffsetDeleteRequest
    request(
        47,
        32767,
        &[
            always(Text),
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[always(Fixed(4))]))),
            ]))),
        ],
    ),
    // DescribeClientQuotasRequest
    request(
        48,
        1,
        &[
            always(Array(&Struct(&[
                always(Text),
                always(Fixed(1)),
                always(Text),
            ]))),
            always(Fixed(1)),
        ],
    ),
    // AlterClientQuotasRequest
    request(
        49,
        1,
        &[
            always(Array(&Struct(&[
                always(Array(&Struct(&[always(Text), always(Text)]))),
                always(Array(&Struct(&[
                    always(Text),
                    always(Fixed(8)),
                    always(Fixed(1)),
                ]))),
            ]))),
            always(Fixed(1)),
        ],
    ),
    // DescribeUserScramCredentialsRequest
    request(50, 0, &[always(Array(&Struct(&[always(Text)])))]),
    // AlterUserScramCredentialsRequest
    request(
        51,
        0,
        &[
            always(Array(&Struct(&[always(Text), always(Fixed(1))]))),
            always(Array(&Struct(&[
                always(Text),
                always(Fixed(1)),
                always(Fixed(4)),
                always(Binary),
                always(Binary),
            ]))),
        ],
    ),
    // VoteRequest
    request(
        52,
        0,
        &[
            always(Text),
            from(1, Fixed(4)),
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Fixed(4)),
                    always(Fixed(4)),
                    from(1, Fixed(16)),
                    from(1, Fixed(16)),
                    always(Fixed(4)),
                    always(Fixed(8)),
                    from(2, Fixed(1)),
                ]))),
            ]))),
        ],
    ),
    // BeginQuorumEpochRequest
    request(
        53,
        1,
        &[
            always(Text),
            from(1, Fixed(4)),
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    from(1, Fixed(16)),
                    always(Fixed(4)),
                    always(Fixed(4)),
                ]))),
            ]))),
            from(
                1,
                Array(&Struct(&[from(1, Text), from(1, Text), from(1, Fixed(2))])),
            ),
        ],
    ),
    // EndQuorumEpochRequest
    request(
        54,
        1,
        &[
            always(Text),
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Fixed(4)),
                    always(Fixed(4)),
                    between(0, 0, Array(&Fixed(4))),
                    from(1, Array(&Struct(&[from(1, Fixed(4)), from(1, Fixed(16))]))),
                ]))),
            ]))),
            from(
                1,
                Array(&Struct(&[from(1, Text), from(1, Text), from(1, Fixed(2))])),
            ),
        ],
    ),
    // DescribeQuorumRequest
    request(
        55,
        0,
        &[always(Array(&Struct(&[
            always(Text),
            always(Array(&Struct(&[always(Fixed(4))]))),
        ])))],
    ),
    // AlterPartitionRequest
    request(
        56,
        0,
        &[
            always(Fixed(4)),
            always(Fixed(8)),
            always(Array(&Struct(&[
                from(2, Fixed(16)),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Fixed(4)),
                    between(0, 2, Array(&Fixed(4))),
                    from(3, Array(&Struct(&[from(3, Fixed(4)), from(3, Fixed(8))]))),
                    from(1, Fixed(1)),
                    always(Fixed(4)),
                ]))),
            ]))),
        ],
    ),
    // UpdateFeaturesRequest
    request(
        57,
        0,
        &[
            always(Fixed(4)),
            always(Array(&Struct(&[
                always(Text),
                always(Fixed(2)),
                between(0, 0, Fixed(1)),
                from(1, Fixed(1)),
            ]))),
            from(1, Fixed(1)),
        ],
    ),
    // EnvelopeRequest
    request(58, 0, &[always(Binary), always(Binary), always(Binary)]),
    // FetchSnapshotRequest
    request(
        59,
        0,
        &[
            tagged(0, Text),
            always(Fixed(4)),
            always(Fixed(4)),
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Fixed(4)),
                    always(Struct(&[always(Fixed(8)), always(Fixed(4))])),
                    always(Fixed(8)),
                    tagged(0, Fixed(16)),
                ]))),
            ]))),
        ],
    ),
    // DescribeClusterRequest
    request(
        60,
        0,
        &[always(Fixed(1)), from(1, Fixed(1)), from(2, Fixed(1))],
    ),
    // DescribeProducersRequest
    request(
        61,
        0,
        &[always(Array(&Struct(&[
            always(Text),
            always(Array(&Fixed(4))),
        ])))],
    ),
    // BrokerRegistrationRequest
    request(
        62,
        0,
        &[
            always(Fixed(4)),
            always(Text),
            always(Fixed(16)),
            always(Array(&Struct(&[
                always(Text),
                always(Text),
                always(Fixed(2)),
                always(Fixed(2)),
            ]))),
            always(Array(&Struct(&[
                always(Text),
                always(Fixed(2)),
                always(Fixed(2)),
            ]))),
            always(Text),
            from(1, Fixed(1)),
            from(2, Array(&Fixed(16))),
            from(3, Fixed(8)),
        ],
    ),
    // BrokerHeartbeatRequest
    request(
        63,
        0,
        &[
            always(Fixed(4)),
            always(Fixed(8)),
            always(Fixed(8)),
            always(Fixed(1)),
            always(Fixed(1)),
            tagged(0, Array(&Fixed(16))),
            tagged(1, Array(&Fixed(16))),
        ],
    ),
    // UnregisterBrokerRequest
    request(64, 0, &[always(Fixed(4))]),
    // DescribeTransactionsRequest
    request(65, 0, &[always(Array(&Text))]),
    // ListTransactionsRequest
    request(
        66,
        0,
        &[
            always(Array(&Text)),
            always(Array(&Fixed(8))),
            from(1, Fixed(8)),
            from(2, Text),
        ],
    ),
    // AllocateProducerIdsRequest
    request(67, 0, &[always(Fixed(4)), always(Fixed(8))]),
    // ConsumerGroupHeartbeatRequest
    request(
        68,
        0,
        &[
            always(Text),
            always(Text),
            always(Fixed(4)),
            always(Text),
            always(Text),
            always(Fixed(4)),
            always(Array(&Text)),
            from(1, Text),
            always(Text),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Fixed(4))),
            ]))),
        ],
    ),
    // ConsumerGroupDescribeRequest
    request(69, 0, &[always(Array(&Text)), always(Fixed(1))]),
    // ControllerRegistrationRequest
    request(
        70,
        0,
        &[
            always(Fixed(4)),
            always(Fixed(16)),
            always(Fixed(1)),
            always(Array(&Struct(&[
                always(Text),
                always(Text),
                always(Fixed(2)),
                always(Fixed(2)),
            ]))),
            always(Array(&Struct(&[
                always(Text),
                always(Fixed(2)),
                always(Fixed(2)),
            ]))),
        ],
    ),
    // GetTelemetrySubscriptionsRequest
    request(71, 0, &[always(Fixed(16))]),
    // PushTelemetryRequest
    request(
        72,
        0,
        &[
            always(Fixed(16)),
            always(Fixed(4)),
            always(Fixed(1)),
            always(Fixed(1)),
            always(Binary),
        ],
    ),
    // AssignReplicasToDirsRequest
    request(
        73,
        0,
        &[
            always(Fixed(4)),
            always(Fixed(8)),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Struct(&[
                    always(Fixed(16)),
                    always(Array(&Struct(&[always(Fixed(4))]))),
                ]))),
            ]))),
        ],
    ),
    // ListConfigResourcesRequest
    request(74, 0, &[from(1, Array(&Fixed(1)))]),
    // DescribeTopicPartitionsRequest
    request(
        75,
        0,
        &[
            always(Array(&Struct(&[always(Text)]))),
            always(Fixed(4)),
            always(Nullable(&[always(Text), always(Fixed(4))])),
        ],
    ),
    // ShareGroupHeartbeatRequest
    request(
        76,
        0,
        &[
            always(Text),
            always(Text),
            always(Fixed(4)),
            always(Text),
            always(Array(&Text)),
        ],
    ),
    // ShareGroupDescribeRequest
    request(77, 0, &[always(Array(&Text)), always(Fixed(1))]),
    // ShareFetchRequest
    request(
        78,
        0,
        &[
            always(Text),
            always(Text),
            always(Fixed(4)),
            always(Fixed(4)),
            always(Fixed(4)),
            always(Fixed(4)),
            from(1, Fixed(4)),
            from(1, Fixed(4)),
            from(2, Fixed(1)),
            from(2, Fixed(1)),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    between(0, 0, Fixed(4)),
                    always(Array(&Struct(&[
                        always(Fixed(8)),
                        always(Fixed(8)),
                        always(Array(&Fixed(1))),
                    ]))),
                ]))),
            ]))),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Fixed(4))),
            ]))),
        ],
    ),
    // ShareAcknowledgeRequest
    request(
        79,
        0,
        &[
            always(Text),
            always(Text),
            always(Fixed(4)),
            from(2, Fixed(1)),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Array(&Struct(&[
                        always(Fixed(8)),
                        always(Fixed(8)),
                        always(Array(&Fixed(1))),
                    ]))),
                ]))),
            ]))),
        ],
    ),
    // AddRaftVoterRequest
    request(
        80,
        0,
        &[
            always(Text),
            always(Fixed(4)),
            always(Fixed(4)),
            always(Fixed(16)),
            always(Array(&Struct(&[
                always(Text),
                always(Text),
                always(Fixed(2)),
            ]))),
            from(1, Fixed(1)),
        ],
    ),
    // RemoveRaftVoterRequest
    request(81, 0, &[always(Text), always(Fixed(4)), always(Fixed(16))]),
    // UpdateRaftVoterRequest
    request(
        82,
        0,
        &[
            always(Text),
            always(Fixed(4)),
            always(Fixed(4)),
            always(Fixed(16)),
            always(Array(&Struct(&[
                always(Text),
                always(Text),
                always(Fixed(2)),
            ]))),
            always(Struct(&[always(Fixed(2)), always(Fixed(2))])),
        ],
    ),
    // InitializeShareGroupStateRequest
    request(
        83,
        0,
        &[
            always(Text),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Fixed(4)),
                    always(Fixed(8)),
                ]))),
            ]))),
        ],
    ),
    // ReadShareGroupStateRequest
    request(
        84,
        0,
        &[
            always(Text),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Struct(&[always(Fixed(4)), always(Fixed(4))]))),
            ]))),
        ],
    ),
    // WriteShareGroupStateRequest
    request(
        85,
        0,
        &[
            always(Text),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Struct(&[
                    always(Fixed(4)),
                    always(Fixed(4)),
                    always(Fixed(4)),
                    always(Fixed(8)),
                    from(1, Fixed(4)),
                    always(Array(&Struct(&[
                        always(Fixed(8)),
                        always(Fixed(8)),
                        always(Fixed(1)),
                        always(Fixed(2)),
                    ]))),
                ]))),
            ]))),
        ],
    ),
    // DeleteShareGroupStateRequest
    request(
        86,
        0,
        &[
            always(Text),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Struct(&[always(Fixed(4))]))),
            ]))),
        ],
    ),
    // ReadShareGroupStateSummaryRequest
    request(
        87,
        0,
        &[
            always(Text),
            always(Array(&Struct(&[
                always(Fixed(16)),
                always(Array(&Struct(&[always(Fixed(4)), always(Fixed(4))]))),
            ]))),
        ],
    ),
    // StreamsGroupHeartbeatRequest
    request(
        88,
        0,
        &[
            always(Text),
            always(Text),
            always(Fixed(4)),
            always(Fixed(4)),
            always(Text),
            always(Text),
            always(Fixed(4)),
            always(Nullable(&[
                always(Fixed(4)),
                always(Array(&Struct(&[
                    always(Text),
                    always(Array(&Text)),
                    always(Array(&Text)),
                    always(Array(&Struct(&[
                        always(Text),
                        always(Fixed(4)),
                        always(Fixed(2)),
                        always(Array(&Struct(&[always(Text), always(Text)]))),
                    ]))),
                    always(Array(&Text)),
                    always(Array(&Struct(&[
                        always(Text),
                        always(Fixed(4)),
                        always(Fixed(2)),
                        always(Array(&Struct(&[always(Text), always(Text)]))),
                    ]))),
                    always(Array(&Struct(&[
                        always(Array(&Fixed(2))),
                        always(Array(&Fixed(2))),
                        always(Array(&Fixed(2))),
                    ]))),
                ]))),
            ])),
            always(Array(&Struct(&[always(Text), always(Array(&Fixed(4)))]))),
            always(Array(&Struct(&[always(Text), always(Array(&Fixed(4)))]))),
            always(Array(&Struct(&[always(Text), always(Array(&Fixed(4)))]))),
            always(Text),
            always(Nullable(&[always(Text), always(Fixed(2))])),
            always(Array(&Struct(&[always(Text), always(Text)]))),
            always(Array(&Struct(&[
                always(Text),
                always(Fixed(4)),
                always(Fixed(8)),
            ]))),
            always(Array(&Struct(&[
                always(Text),
                always(Fixed(4)),
                always(Fixed(8)),
            ]))),
            always(Fixed(1)),
        ],
    ),
    // StreamsGroupDescribeRequest
    request(
        89,
        0,
        &[always(Array(&Text)), always(Fixed(1)), from(1, Fixed(1))],
    ),
    // DescribeShareGroupOffsetsRequest
    request(
        90,
        0,
        &[always(Array(&Struct(&[
            always(Text),
            always(Array(&Struct(&[always(Text), always(Array(&Fixed(4)))]))),
        ])))],
    ),
    // AlterShareGroupOffsetsRequest
    request(
        91,
        0,
        &[
            always(Text),
            always(Array(&Struct(&[
                always(Text),
                always(Array(&Struct(&[always(Fixed(4)), always(Fixed(8))]))),
            ]))),
        ],
    ),
    // DeleteShareGroupOffsetsRequest
    request(
        92,
        0,
        &[always(Text), always(Array(&Struct(&[always(Text)])))],
    ),
    // StreamsGroupTopologyDescriptionUpdateRequest
    request(
        93,
        0,
        &[
            always(Text),
            always(Text),
            always(Fixed(4)),
            always(Struct(&[
                always(Array(&Struct(&[
                    always(Text),
                    always(Array(&Struct(&[
                        always(Text),
                        always(Fixed(1)),
                        always(Array(&Text)),
                        always(Text),
                        always(Array(&Text)),
                        always(Array(&Text)),
                    ]))),
                ]))),
                always(Array(&Struct(&[
                    always(Struct(&[
                        always(Text),
                        always(Fixed(1)),
                        always(Array(&Text)),
                        always(Text),
                        always(Array(&Text)),
                        always(Array(&Text)),
                    ])),
                    always(Struct(&[
                        always(Text),
                        always(Fixed(1)),
                        always(Array(&Text)),
                        always(Text),
                        always(Array(&Text)),
                        always(Array(&Text)),
                    ])),
                ]))),
            ])),
        ],
    ),
    // UnregisterControllerRequest
    request(94, 0, &[always(Fixed(4))]),
];
