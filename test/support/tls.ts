import { getCACertificates, setDefaultCACertificates } from "node:tls";

/** A certificate for target.example, other.example, proxy.example, localhost and 127.0.0.5, signed by itself, until 2126. */
export const TLS = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg93PdnET9oTyn6sdH
2OXKaAQM6sGCkTQ/9YgEH0wFNzahRANCAATZEUltLve55u5jgVJ4HmzkZDRWps+B
YdQHVckZ6fbRr17GWfMLvHxTVwRBA4jhpdmfLUrz7owaYKAM/pAJ5WSq
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIB1TCCAXugAwIBAgIUU7ypXVuHjZ6xMH7Z8+Wczn3mI30wCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOdGFyZ2V0LmV4YW1wbGUwIBcNMjYxMTMwMTQ0ODQyWhgPMjEy
NjExMDYxNDQ4NDJaMBkxFzAVBgNVBAMMDnRhcmdldC5leGFtcGxlMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAE2RFJbS73uebuY4FSeB5s5GQ0VqbPgWHUB1XJGen2
0a9exlnzC7x8U1cEQQOI4aXZny1K8+6MGmCgDP6QCeVkqqOBnjCBmzAdBgNVHQ4E
FgQUQqiRpMY8tIh6WZ8o2cJV5d7CQbMwHwYDVR0jBBgwFoAUQqiRpMY8tIh6WZ8o
2cJV5d7CQbMwDwYDVR0TAQH/BAUwAwEB/zBIBgNVHREEQTA/gg50YXJnZXQuZXhh
bXBsZYINb3RoZXIuZXhhbXBsZYINcHJveHkuZXhhbXBsZYcEfwAABYIJbG9jYWxo
b3N0MAoGCCqGSM49BAMCA0gAMEUCIDMspF1fPMtwJipvvai6jPu7oBQsR5z5Uify
kDowrAdrAiEAm85ZrH/fq8QktZvhrrjBRbFhsEclbavRTEhyYYFylJk=
-----END CERTIFICATE-----
`,
};

/** From here on this process believes it. */
export function trustTestCertificate(): void {
  setDefaultCACertificates([...getCACertificates("default"), TLS.cert]);
}
