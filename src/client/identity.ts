import { type Http, pathOf } from "./http.ts";

/** Who may call for a tenant, and the tenants themselves. Instants are RFC 3339 in UTC. */

export type Role = "admin" | "owner" | "operator" | "viewer" | "worker";

export type ApiKey = {
  keyId: string;
  /** How the key begins. */
  prefix: string;
  label: string;
  role: Role;
  state: "active" | "expiring" | "expired" | "revoked";
  expiresAt: string | null;
  revokedAt: string | null;
  lastUsedAt: string | null;
  createdAt: string;
  createdBy: string | null;
  rotatedFrom: string | null;
  replacedBy: string | null;
};
export type ApiKeyPage = { items: ApiKey[]; next: string | null };
/** `key` is the whole key: nobody can show it again. */
export type ApiKeyMade = { key: string; apiKey: ApiKey };

export type ApiKeys = {
  list(page?: { limit?: number; after?: string }): Promise<ApiKeyPage>;
  get(keyId: string): Promise<ApiKey>;
  /** Never repeated by itself: each call makes another key. After a doubtful end, look for it in the list and revoke it. */
  create(draft: { label: string; role: string; expiresAt?: string; expiresInDays?: number }): Promise<ApiKeyMade>;
  /** Never repeated by itself. After a doubtful end, `key-not-current` names the key that was made: rotate that one. */
  rotate(keyId: string, choice?: { overlapSeconds?: number }): Promise<ApiKeyMade & { replaced: ApiKey }>;
  /** `changed` is false when it was revoked already. */
  revoke(keyId: string): Promise<{ apiKey: ApiKey; changed: boolean }>;
};

export type SigningKey = {
  keyId: string;
  label: string;
  state: "active" | "expiring" | "expired" | "revoked";
  activeUntil: string | null;
  revokedAt: string | null;
  createdAt: string;
  createdBy: string;
  rotatedFrom: string | null;
  replacedBy: string | null;
};
/** `key` is the whole key, `whsec_…`: nobody can show it again. */
export type SigningKeyMade = { key: string; signingKey: SigningKey };

/** What signs the tenant's calls to others. */
export type SigningKeys = {
  list(page?: { limit?: number; after?: string }): Promise<{ items: SigningKey[]; next: string | null }>;
  /** Never repeated by itself, as with API keys. */
  create(draft: { label: string }): Promise<SigningKeyMade>;
  rotate(keyId: string, choice?: { overlapSeconds?: number }): Promise<SigningKeyMade & { replaced: SigningKey }>;
  /** `changed` is false when it was revoked already. */
  revoke(keyId: string): Promise<{ signingKey: SigningKey; changed: boolean }>;
};

export type Tenant = {
  tenantId: string;
  name: string;
  status: "active" | "suspended";
  /** null: all. */
  allowedJobs: string[] | null;
  /** Where its calls may lead; null: any host and port at a public address. */
  outbound: OutboundRules | null;
  createdAt: string;
};
export type OutboundRules = { allow: string[]; hosts: string[] | null; ports: number[] | null };
export type TenantPage = { items: Tenant[]; next: string | null };

/** For keys of the role admin. */
export type Tenants = {
  list(filters?: { status?: string; limit?: number; after?: string }): Promise<TenantPage>;
  get(tenantId: string): Promise<Tenant>;
  /** After a doubtful end, `tenant-name-taken` may mean that the call before did it. */
  create(draft: { name: string; allowedJobs?: readonly string[] | null }): Promise<Tenant>;
  edit(
    tenantId: string,
    change: {
      name?: string;
      allowedJobs?: readonly string[] | null;
      outbound?: Partial<OutboundRules> | null;
      status?: "active" | "suspended";
    },
  ): Promise<{ tenant: Tenant; changed: boolean }>;
};

/** Who is calling: by a key or by a token. */
export type Me = {
  tenant: { tenantId: string; name: string; status: string };
  key: { keyId: string; prefix: string; label: string } | null;
  token: { issuer: string; subject: string } | null;
  role: Role;
  actingFor: boolean;
};

export function apiKeysOf(http: Http): ApiKeys {
  return {
    list: (page = {}) => http.call({ path: "/v1/api-keys", query: page }),
    get: (keyId) => http.call({ path: pathOf`/v1/api-keys/${keyId}` }),
    create: (draft) => http.call({ method: "POST", path: "/v1/api-keys", body: JSON.stringify(draft), once: true }),
    rotate: (keyId, choice = {}) =>
      http.call({
        method: "POST",
        path: pathOf`/v1/api-keys/${keyId}/rotate`,
        body: JSON.stringify(choice),
        once: true,
      }),
    revoke: (keyId) => http.call({ method: "DELETE", path: pathOf`/v1/api-keys/${keyId}` }),
  };
}

export function signingKeysOf(http: Http): SigningKeys {
  return {
    list: (page = {}) => http.call({ path: "/v1/signing-keys", query: page }),
    create: (draft) => http.call({ method: "POST", path: "/v1/signing-keys", body: JSON.stringify(draft), once: true }),
    rotate: (keyId, choice = {}) =>
      http.call({
        method: "POST",
        path: pathOf`/v1/signing-keys/${keyId}/rotate`,
        body: JSON.stringify(choice),
        once: true,
      }),
    revoke: (keyId) => http.call({ method: "DELETE", path: pathOf`/v1/signing-keys/${keyId}` }),
  };
}

export function tenantsOf(http: Http): Tenants {
  return {
    list: (filters = {}) => http.call({ path: "/v1/tenants", query: filters }),
    get: (tenantId) => http.call({ path: pathOf`/v1/tenants/${tenantId}` }),
    create: (draft) => http.call({ method: "POST", path: "/v1/tenants", body: JSON.stringify(draft) }),
    edit: (tenantId, change) =>
      http.call({ method: "PATCH", path: pathOf`/v1/tenants/${tenantId}`, body: JSON.stringify(change) }),
  };
}
