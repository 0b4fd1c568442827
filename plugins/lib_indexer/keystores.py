"""Configures TLS for index writers: trusted certificates and the client's own, from PEM or Java's
files.

    trust store    PEM; JKS; PKCS12 (with the package cryptography, extra `keystores`)
    key store      PEM with key and certificates; PKCS12

Which one it is shows in the first bytes, whatever the configuration says: Java, too, reads either
under the type JKS. A JKS file's private keys are enciphered in a way of its own; `keytool
-importkeystore … -deststoretype PKCS12` converts it. Certificates are verified unless a parameter
says otherwise.

    JKS    magic FEEDFEED, version 2, number of entries, (tag 2, alias UTF, time 8, type UTF,
           length, certificate)*, SHA-1 of the password in UTF-16BE, "Mighty Aphrodite" and all of
           the above

Source: sun.security.provider.JavaKeyStore for the layout.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.errors import ConfigError
from minutch.plugin.parameters import Parameters

JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
PEM_MARK: Final = b"-----BEGIN "
_CERTIFICATE: Final = 2
_SALT: Final = b"Mighty Aphrodite"


@dataclass(frozen=True)
class KeyStoreFile:
    """A file with certificates or keys, and its password."""

    path: Path
    password: str


def store_of(parameters: Parameters, name: str) -> KeyStoreFile | None:
    """Returns the store that NAME.path and NAME.password name; None where there is none."""
    path = parameters.get(f"{name}.path", "").strip()
    return KeyStoreFile(Path(path), parameters.get(f"{name}.password", "")) if path else None


def tls_context(
    trusted: KeyStoreFile | None = None, own: KeyStoreFile | None = None, *, verify: bool = True
) -> ssl.SSLContext:
    """Returns a context that trusts the certificates of a store (else the usual authorities) and
    shows those of another.

    Raises ConfigError, naming the file.
    """
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    for store, load in ((trusted, _trust), (own, _show)):
        if store is None:
            continue
        try:
            load(context, store, store.path.read_bytes())
        except OSError as exc:  # ssl.SSLError is one
            raise ConfigError(f"{store.path}: can't be used: {exc.strerror or exc}") from exc
        except (ValueError, struct.error, IndexError) as exc:
            raise ConfigError(f"{store.path}: can't be read with this password: {exc}") from exc
    return context


def _trust(context: ssl.SSLContext, store: KeyStoreFile, data: bytes) -> None:
    if data.startswith(JKS_MAGIC):
        certificates = jks_certificates(data, store.password)
    elif PEM_MARK in data:
        context.load_verify_locations(cadata=data.decode("ascii", "replace"))
        return
    else:
        certificates = _pkcs12(store, data)[1]
    if not certificates:
        raise ConfigError(f"{store.path}: holds no certificate")
    context.load_verify_locations(cadata=b"".join(certificates))


def _show(context: ssl.SSLContext, store: KeyStoreFile, data: bytes) -> None:
    if data.startswith(JKS_MAGIC):
        hint = (
            "keytool -importkeystore -srckeystore FILE -destkeystore NEW.p12 -deststoretype PKCS12"
            " makes one of it"
        )
        raise ConfigError(f"{store.path}: a key store has to be PKCS12 or PEM, not JKS", hint=hint)
    if PEM_MARK in data:
        context.load_cert_chain(store.path, password=store.password)
        return
    with tempfile.NamedTemporaryFile(
        prefix="minutch-key-"
    ) as file:  # readable by its owner alone; ssl takes files only
        file.write(_pkcs12(store, data)[0])
        file.flush()
        context.load_cert_chain(file.name, password=store.password or None)


def jks_certificates(data: bytes, password: str) -> list[bytes]:
    """Returns the certificates of a JKS file, in DER. ValueError for damage or a wrong password."""
    body, digest = data[:-20], data[-20:]
    if hashlib.sha1(password.encode("utf-16-be") + _SALT + body).digest() != digest:
        raise ValueError("its digest does not match")
    version, count = struct.unpack_from(">II", body, 4)
    if version != 2:
        raise ValueError(f"version {version} of JKS")
    found, position = [], 12
    for _ in range(count):
        (tag,) = struct.unpack_from(">I", body, position)
        if tag != _CERTIFICATE:
            raise ValueError("it holds keys; a trust store has certificates only")
        position = _after_text(body, position + 4) + 8
        position = _after_text(body, position)
        (length,) = struct.unpack_from(">I", body, position)
        found.append(body[position + 4 : position + 4 + length])
        position += 4 + length
    return found


def _after_text(body: bytes, position: int) -> int:
    return position + 2 + int(struct.unpack_from(">H", body, position)[0])


def _pkcs12(store: KeyStoreFile, data: bytes) -> tuple[bytes, list[bytes]]:
    """Key and certificates as PEM, the key enciphered with the store's password; and the
    certificates in DER.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as exc:
        hint = "pip install 'minutch[keystores]', or give the certificates as PEM"
        raise ConfigError(
            f"{store.path}: PKCS12 needs the package cryptography", hint=hint
        ) from exc
    encoding, secret = serialization.Encoding, store.password.encode()
    content = pkcs12.load_pkcs12(data, secret or None)
    certificates = [
        item.certificate for item in (content.cert, *content.additional_certs) if item is not None
    ]
    key = b""
    if content.key is not None:
        cipher = (
            serialization.BestAvailableEncryption(secret)
            if secret
            else serialization.NoEncryption()
        )
        key = content.key.private_bytes(encoding.PEM, serialization.PrivateFormat.PKCS8, cipher)
    pem = key + b"".join(item.public_bytes(encoding.PEM) for item in certificates)
    return pem, [item.public_bytes(encoding.DER) for item in certificates]
