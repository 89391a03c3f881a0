/**
 * The one cookie of ours. Scripts cannot read it and other sites cannot send it (`Strict`: nothing of ours comes back from a
 * sign-in elsewhere, which alone would need `Lax`). Over https its name begins with `__Host-`, so that no neighbouring
 * host name can have set it, and the plain name is not looked at.
 */
const nameOf = (secure: boolean) => (secure ? "__Host-punctual_session" : "punctual_session");
const attributesOf = (secure: boolean) => `Path=/; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;

/** `forMs`: how long the browser keeps it. */
export function setCookie(value: string, forMs: number, secure: boolean): string {
  return `${nameOf(secure)}=${value}; ${attributesOf(secure)}; Max-Age=${Math.max(0, Math.floor(forMs / 1000))}`;
}

export function clearCookie(secure: boolean): string {
  return setCookie("", 0, secure);
}

/** Undefined also when it is there twice: one of the two is somebody else's. */
export function cookieOf(header: string | undefined, secure: boolean): string | undefined {
  const name = `${nameOf(secure)}=`;
  const values = (header ?? "")
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(name));
  return values.length === 1 ? values[0]!.slice(name.length) : undefined;
}
