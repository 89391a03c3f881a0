import { ROLES, type Role } from "../context.ts";

/** What an installation wants to find in a token, under which names. */
export type ClaimNames = {
  tenantClaim: string;
  roleClaim: string;
  /** Which role a value of the role claim stands for; undefined: values are names of roles, and none of them is `admin`. */
  roles: ReadonlyMap<string, Role> | undefined;
};

export type Claims = Readonly<Record<string, unknown>>;

/** The claim of that very name, or else what its dots lead to: `realm_access.roles`. */
export function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name.split(".").reduce<unknown>((found, part) => {
    const isObject = typeof found === "object" && found !== null && Object.hasOwn(found, part);
    return isObject ? (found as Claims)[part] : undefined;
  }, claims);
}

/** The highest role among the claim's values; undefined where none of them stands for one. */
export function roleOf(claims: Claims, { roleClaim, roles }: ClaimNames): Role | undefined {
  const claim = claimOf(claims, roleClaim);
  const values: unknown[] = Array.isArray(claim) ? claim : [claim];
  const held = new Set(
    values
      .filter((value) => typeof value === "string")
      .map((value) => (roles === undefined ? ownName(value) : roles.get(value))),
  );
  return ROLES.find((role) => held.has(role));
}

/** Nobody becomes an admin of the platform by an issuer's word alone: that takes a mapping. */
function ownName(value: string): Role | undefined {
  return ROLES.find((role) => role === value && role !== "admin");
}

/** `groupA=operator,groupB=viewer`; a group may have `=` and `,` of its own. Undefined: it cannot be read. */
export function readRoleMap(text: string): ReadonlyMap<string, Role> | undefined {
  const roles = new Map<string, Role>();
  const entry = new RegExp(`\\s*(.+?)\\s*=\\s*(${ROLES.join("|")})\\s*(?:,|$)`, "y");
  while (entry.lastIndex < text.length) {
    const found = entry.exec(text);
    // A role in the middle of a name: it was meant to be two entries.
    if (found === null || new RegExp(`=\\s*(${ROLES.join("|")})\\b`).test(found[1]!)) return undefined;
    roles.set(found[1]!, found[2] as Role);
  }
  return roles.size === 0 ? undefined : roles;
}
