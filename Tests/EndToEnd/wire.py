"""The wire formats, written here a second time and independently of the product: frames, tickets' keys, invites."""

import base64
import datetime
import hashlib
import json
import os
import struct

import nacl.signing


def frame(header, body=b""):
    """A frame as in pairing and prefaces: big-endian length, JSON header, body."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("!I", len(text)) + text + body


def parse_frame(data):
    """(header, rest) of bytes that begin with a frame."""
    (size,) = struct.unpack_from("!I", data)
    assert len(data) >= 4 + size, f"frame of {size} bytes cut at {len(data) - 4}"
    return json.loads(data[4 : 4 + size]), data[4 + size :]


def preface(token):
    return frame({"v": 1, "kind": "httpTunnel", "authorization": f"Bearer {token}"})


def pair_request(token, device_name="an iroh client"):
    return frame({"v": 1, "kind": "pairRequest", "pairingToken": token, "deviceName": device_name})


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def fingerprint(public_key):
    return "sha256:" + encode(hashlib.sha256(public_key).digest())


def date(seconds_from_now):
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds_from_now)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


class InviteMaker:
    """Makes invites with the key `seed`; every part can be replaced, to make bad ones."""

    def __init__(self, seed, ticket, alpns, name="an iroh host"):
        self.key = nacl.signing.SigningKey(seed)
        self.public = bytes(self.key.verify_key)
        self.payload = {
            "v": 4,
            "name": name,
            "pairingToken": "pt_" + encode(os.urandom(32)),
            "fingerprint": fingerprint(self.public),
            "preference": "irohOnly",
            "expiresAt": date(600),
            "transports": {
                "iroh": {
                    "version": 2,
                    "nodeId": self.public.hex(),
                    "alpns": alpns,
                    "addressMode": "ticket",
                    "ticket": ticket,
                }
            },
        }

    @property
    def token(self):
        return self.payload["pairingToken"]

    def envelope(self, **changes):
        payload = encode(json.dumps({**self.payload, **changes}).encode())
        return {
            "v": 4,
            "alg": "ed25519",
            "signedPayload": payload,
            "publicKey": encode(self.public),
            "signature": encode(self.key.sign(payload.encode()).signature),
        }

    def link(self, scheme="culvert", **changes):
        return link(self.envelope(**changes), scheme)


def link(envelope, scheme="culvert"):
    return f"{scheme}://connect?v=4&invite={encode(json.dumps(envelope).encode())}"


def parse_invite(text):
    """(envelope, payload) of a link, after checking signature and fingerprint with PyNaCl."""
    prefix, _, invite = text.partition("invite=")
    assert prefix in ("culvert://connect?v=4&", "oppi://connect?v=4&"), prefix
    envelope = json.loads(decode(invite))
    public = decode(envelope["publicKey"])
    nacl.signing.VerifyKey(public).verify(envelope["signedPayload"].encode(), decode(envelope["signature"]))
    payload = json.loads(decode(envelope["signedPayload"]))
    assert payload["fingerprint"] == fingerprint(public)
    return envelope, payload
