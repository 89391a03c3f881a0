import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";

/** An OpenID Connect issuer on a port of its own: a discovery document, keys, and tokens as a test wants them. */
export type Issuer = {
  url: string;
  audience: string;
  /** The public key as PEM: what somebody who confuses algorithms would take for a shared secret. */
  publicPem(): Promise<string>;
  /** Signed with the newest key; `sign` changes what is usual. */
  token(claims: JWTPayload, sign?: Partial<Signing>): Promise<string>;
  /** From now on another key signs, and is the only one that is published. */
  rotate(alg?: string): Promise<void>;
  /** Answers no more, until it is open again. */
  shut(how: "refuses" | "breaks" | "open"): Promise<void>;
  /** How often its keys were asked for. */
  asked(): number;
  close(): Promise<void>;
};

type Signing = {
  issuer: string;
  audience: string;
  expiresAt: number | null;
  header: Record<string, string>;
  key: CryptoKey | Uint8Array;
};

export async function startIssuer(alg = "RS256"): Promise<Issuer> {
  let answers: "open" | "breaks" = "open";
  let asked = 0;
  let keys = 0;
  let signing: { kid: string; alg: string; privateKey: CryptoKey; publicKey: CryptoKey; jwk: JWK };

  async function rotate(to: string = alg): Promise<void> {
    const pair = await generateKeyPair(to, { extractable: true });
    const kid = `key-${++keys}`;
    signing = { kid, alg: to, ...pair, jwk: { ...(await exportJWK(pair.publicKey)), kid, alg: to, use: "sig" } };
  }
  await rotate();

  const server = createServer((request, response) => {
    if (answers === "breaks") return response.writeHead(502).end("bad gateway");
    response.setHeader("content-type", "application/json");
    if (request.url === "/.well-known/openid-configuration") {
      return response.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/keys` }));
    }
    asked++;
    return response.end(JSON.stringify({ keys: [signing.jwk] }));
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const audience = "punctual";
  const close = async () => {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };

  return {
    url,
    audience,
    publicPem: () => exportSPKI(signing.publicKey),
    token(claims, sign = {}) {
      const { expiresAt = Math.floor(Date.now() / 1000) + 600 } = sign;
      const token = new SignJWT(claims)
        .setProtectedHeader({ alg: signing.alg, kid: signing.kid, ...sign.header })
        .setIssuer(sign.issuer ?? url)
        .setAudience(sign.audience ?? audience)
        .setIssuedAt();
      return (expiresAt === null ? token : token.setExpirationTime(expiresAt)).sign(sign.key ?? signing.privateKey);
    },
    rotate,
    async shut(how) {
      answers = how === "breaks" ? "breaks" : "open";
      if (how === "refuses") await close();
      else if (!server.listening) await listen(port);
    },
    asked: () => asked,
    close,
  };
}
