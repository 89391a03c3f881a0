import { type Http, pathOf } from "./http.ts";

/** What emails of effects say, by name. */

export type EmailTemplateDraft = { subject: string; text: string; html?: string | null };
export type EmailTemplate = Required<EmailTemplateDraft> & {
  name: string;
  version: number;
  updatedAt: string;
  updatedBy: string;
};

export type EmailTemplates = {
  list(): Promise<{ items: EmailTemplate[] }>;
  get(name: string): Promise<EmailTemplate>;
  /** Safe to call again after a doubtful end: the same words change nothing. */
  put(name: string, draft: EmailTemplateDraft & { expectedVersion?: number }): Promise<EmailTemplate>;
  /** After a doubtful end, `not-found` may mean that the call before did it. */
  delete(name: string): Promise<{ name: string; version: number }>;
};

export function emailTemplatesOf(http: Http): EmailTemplates {
  return {
    list: () => http.call({ path: "/v1/email-templates" }),
    get: (name) => http.call({ path: pathOf`/v1/email-templates/${name}` }),
    put: (name, draft) =>
      http.call({ method: "PUT", path: pathOf`/v1/email-templates/${name}`, body: JSON.stringify(draft) }),
    delete: (name) => http.call({ method: "DELETE", path: pathOf`/v1/email-templates/${name}` }),
  };
}
