//! What is random in a control plane: the key that signs service account tokens, a token, a name.

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::{
    rand::{SecureRandom, SystemRandom},
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};

use crate::Error;

/// What stands before the point of a P-256 public key in its usual form (`SubjectPublicKeyInfo`, RFC
/// 5480): the sequence, the algorithm "EC public key", the curve "P-256", a string of 65 bytes. The
/// API server wants the public key in this form, and ring gives the bare point.
const PUBLIC_KEY_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A pair of keys, both as PEM.
pub(crate) struct Key {
    pub(crate) private_pem: String,
    pub(crate) public_pem: String,
}

impl Key {
    pub(crate) fn generate() -> Result<Self, Error> {
        let random = SystemRandom::new();
        let private = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)
            .map_err(|_| no_random())?;
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, private.as_ref(), &random)
                .map_err(|_| no_random())?;
        let public = [&PUBLIC_KEY_HEAD, pair.public_key().as_ref()].concat();
        Ok(Self {
            private_pem: pem("PRIVATE KEY", private.as_ref()),
            public_pem: pem("PUBLIC KEY", &public),
        })
    }
}

/// A token that no other control plane on this machine has, so that a request which reaches the wrong
/// one, by a port that changed hands, is refused.
pub(crate) fn token() -> Result<String, Error> {
    Ok(BASE64_STANDARD.encode(random::<18>()?))
}

/// A file's name that nobody else has.
pub(crate) fn name() -> Result<String, Error> {
    Ok(format!("{:016x}", u64::from_ne_bytes(random()?)))
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], Error> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| no_random())?;
    Ok(bytes)
}

fn no_random() -> Error {
    Error::io("make a key")(std::io::Error::other("the system gives no random numbers"))
}

fn pem(kind: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {kind}-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().map(|&byte| char::from(byte)));
        pem.push('\n');
    }
    pem + &format!("-----END {kind}-----\n")
}
