"""Certificates for tests, made for one run in a folder of its own."""

import datetime
import ipaddress
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


def _name(subject):
    """A subject such as `O=org,CN=app`, or its parts, in the order of the certificate. A part that is a list has several attributes."""
    known = {"CN": NameOID.COMMON_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME, "O": NameOID.ORGANIZATION_NAME, "C": NameOID.COUNTRY_NAME,
             "L": NameOID.LOCALITY_NAME, "ST": NameOID.STATE_OR_PROVINCE_NAME}
    parts = (tuple(part.split("=", 1)) for part in subject.split(",")) if isinstance(subject, str) else subject
    parts = [part if isinstance(part, list) else [part] for part in parts]
    return x509.Name([
        x509.RelativeDistinguishedName([x509.NameAttribute(known[kind], value) for kind, value in part]) for part in parts])


class Certificates:
    """An issuer and the files of what it has issued. A file has a certificate and its key, as drivers and servers take them."""

    def __init__(self, folder, name="CN=issuer"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(name)
        certificate = self._builder(self.name, self.key, 100).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.ca = self._write("ca.pem", certificate.sign(self.key, hashes.SHA256()))

    def _builder(self, subject, key, days):
        now = datetime.datetime.now(datetime.timezone.utc)
        begin = min(now, now + days * DAY) - DAY
        return (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(now + days * DAY))

    def _write(self, file, certificate, key=None):
        content = certificate.public_bytes(serialization.Encoding.PEM)
        if key is not None:
            content += self.key_pem(key)
        path = self.folder / file
        path.write_bytes(content)
        return str(path)

    @staticmethod
    def key_pem(key, encryption=serialization.NoEncryption()):
        return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)

    def revoke(self, file, revoked=(), days=30):
        """A list of revoked certificates, by the files that were issued; one with a negative number of days has ended."""
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (x509.CertificateRevocationListBuilder().issuer_name(self.name)
                   .last_update(min(now, now + days * DAY) - DAY).next_update(now + days * DAY)
                   .add_extension(x509.CRLNumber(1), critical=False)
                   .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False))
        for issued in revoked:
            serial = x509.load_pem_x509_certificate(pathlib.Path(issued).read_bytes()).serial_number
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - DAY)
            builder = builder.add_revoked_certificate(entry.build())
        path = self.folder / file
        path.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return str(path)

    def issue(self, file, subject, days=90):
        """A certificate for this machine; one with a negative number of days has ended."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = self._builder(_name(subject), key, days).add_extension(x509.SubjectAlternativeName(names), critical=False)
        return self._write(file, builder.sign(self.key, hashes.SHA256()), key)
