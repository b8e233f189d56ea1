//! Keys: TLS.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Boolean, Class, List, Password, Text};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("ssl.keystore.location", Text, None)
        .per_broker()
        .not_supported_yet()
        .doc("File of the key store."),
    ConfigKey::new("ssl.keystore.password", Password, None)
        .per_broker()
        .not_supported_yet()
        .doc("Password of the key store."),
    ConfigKey::new("ssl.keystore.type", Text, Some("JKS"))
        .per_broker()
        .not_supported_yet()
        .doc("Format of the key store."),
    ConfigKey::new("ssl.keystore.key", Password, None)
        .per_broker()
        .not_supported_yet()
        .doc("Private key in PEM form."),
    ConfigKey::new("ssl.keystore.certificate.chain", Password, None)
        .per_broker()
        .not_supported_yet()
        .doc("Certificate chain in PEM form."),
    ConfigKey::new("ssl.key.password", Password, None)
        .per_broker()
        .not_supported_yet()
        .doc("Password of the private key."),
    ConfigKey::new("ssl.truststore.location", Text, None)
        .per_broker()
        .not_supported_yet()
        .doc("File of the trust store."),
    ConfigKey::new("ssl.truststore.password", Password, None)
        .per_broker()
        .not_supported_yet()
        .doc("Password of the trust store."),
    ConfigKey::new("ssl.truststore.type", Text, Some("JKS"))
        .per_broker()
        .not_supported_yet()
        .doc("Format of the trust store."),
    ConfigKey::new("ssl.truststore.certificates", Password, None)
        .per_broker()
        .not_supported_yet()
        .doc("Trusted certificates in PEM form."),
    ConfigKey::new("ssl.client.auth", Text, Some("none"))
        .one_of(&["required", "requested", "none"])
        .per_broker()
        .not_supported_yet()
        .doc("Whether clients must show a certificate."),
    ConfigKey::new("ssl.enabled.protocols", List, Some("TLSv1.2,TLSv1.3"))
        .per_broker()
        .not_supported_yet()
        .doc("TLS versions that are offered."),
    ConfigKey::new("ssl.protocol", Text, Some("TLSv1.3"))
        .per_broker()
        .not_supported_yet()
        .doc("TLS version that is preferred."),
    ConfigKey::new("ssl.cipher.suites", List, Some(""))
        .per_broker()
        .not_supported_yet()
        .doc("Cipher suites that are offered."),
    ConfigKey::new("ssl.provider", Text, None)
        .per_broker()
        .not_supported_yet()
        .doc("Security provider of TLS."),
    ConfigKey::new("ssl.keymanager.algorithm", Text, Some("SunX509"))
        .per_broker()
        .not_supported_yet()
        .doc("Algorithm of the key manager."),
    ConfigKey::new("ssl.trustmanager.algorithm", Text, Some("PKIX"))
        .per_broker()
        .not_supported_yet()
        .doc("Algorithm of the trust manager."),
    ConfigKey::new("ssl.secure.random.implementation", Text, None)
        .per_broker()
        .not_supported_yet()
        .doc("Source of random numbers for TLS."),
    ConfigKey::new("ssl.endpoint.identification.algorithm", Text, Some("https"))
        .per_broker()
        .not_supported_yet()
        .doc("How a server's name is checked against its certificate."),
    ConfigKey::new("ssl.engine.factory.class", Class, None)
        .per_broker()
        .not_supported_yet()
        .doc("Class that makes TLS engines."),
    ConfigKey::new("ssl.principal.mapping.rules", Text, Some("DEFAULT"))
        .not_supported_yet()
        .doc("Rules that make principals of certificate names."),
    ConfigKey::new("ssl.allow.dn.changes", Boolean, Some("false"))
        .not_supported_yet()
        .doc("Whether a new key store may carry another distinguished name."),
    ConfigKey::new("ssl.allow.san.changes", Boolean, Some("false"))
        .not_supported_yet()
        .doc("Whether a new key store may lack alternative names of the old one."),
];
