import { z } from "zod";

/** For routes without path or query parameters: whatever is sent is refused by name. */
export const noFields = z.strictObject({});
