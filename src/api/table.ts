import type { Route } from "./route.ts";
import { createApiKeyRoute } from "./routes/api-keys/create.ts";
import { getApiKeyRoute } from "./routes/api-keys/get.ts";
import { listApiKeysRoute } from "./routes/api-keys/list.ts";
import { revokeApiKeyRoute } from "./routes/api-keys/revoke.ts";
import { rotateApiKeyRoute } from "./routes/api-keys/rotate.ts";
import { exportAuditRoute } from "./routes/audit/export.ts";
import { listAuditRoute } from "./routes/audit/list.ts";
import { deleteCalendarRoute } from "./routes/calendars/delete.ts";
import { getCalendarRoute } from "./routes/calendars/get.ts";
import { listCalendarsRoute } from "./routes/calendars/list.ts";
import { putCalendarRoute } from "./routes/calendars/put.ts";
import { listCalendarVersionsRoute } from "./routes/calendars/versions.ts";
import { dismissDeadLetterRoute } from "./routes/dead-letters/dismiss.ts";
import { getDeadLetterRoute } from "./routes/dead-letters/get.ts";
import { groupDeadLettersRoute } from "./routes/dead-letters/groups.ts";
import { listDeadLettersRoute } from "./routes/dead-letters/list.ts";
import { dismissDeadLettersRoute, replayDeadLettersRoute } from "./routes/dead-letters/many.ts";
import { listDeadLettersOfScheduleRoute } from "./routes/dead-letters/of-schedule.ts";
import { replayDeadLetterRoute } from "./routes/dead-letters/replay.ts";
import { getEffectRoute } from "./routes/effects/get.ts";
import { listEffectsRoute } from "./routes/effects/list.ts";
import { resolveEffectRoute } from "./routes/effects/resolve.ts";
import { deleteEmailTemplateRoute } from "./routes/email-templates/delete.ts";
import { getEmailTemplateRoute } from "./routes/email-templates/get.ts";
import { listEmailTemplatesRoute } from "./routes/email-templates/list.ts";
import { putEmailTemplateRoute } from "./routes/email-templates/put.ts";
import { cancelOperationRoute } from "./routes/operations/cancel.ts";
import { getOperationRoute } from "./routes/operations/get.ts";
import { listOperationsRoute } from "./routes/operations/list.ts";
import { getQuotasRoute } from "./routes/quotas/get.ts";
import { putQuotasRoute } from "./routes/quotas/put.ts";
import { putClassQuotaRoute } from "./routes/quotas/put-class.ts";
import { getUsageRoute } from "./routes/quotas/usage.ts";
import { listAttemptsRoute } from "./routes/runs/attempts.ts";
import { cancelRunRoute } from "./routes/runs/cancel.ts";
import { createRunRoute } from "./routes/runs/create.ts";
import { getRunRoute } from "./routes/runs/get.ts";
import { listRunsRoute } from "./routes/runs/list.ts";
import { getLogsRoute } from "./routes/runs/logs.ts";
import { getObjectRoute } from "./routes/runs/object.ts";
import { listRunsOfScheduleRoute } from "./routes/runs/of-schedule.ts";
import { getResultRoute } from "./routes/runs/result.ts";
import { backfillRoute } from "./routes/schedules/backfill.ts";
import { createScheduleRoute } from "./routes/schedules/create.ts";
import { deleteScheduleRoute } from "./routes/schedules/delete.ts";
import { getScheduleRoute } from "./routes/schedules/get.ts";
import { getLedgerRoute } from "./routes/schedules/ledger.ts";
import { listSchedulesRoute } from "./routes/schedules/list.ts";
import { patchScheduleRoute } from "./routes/schedules/patch.ts";
import { pauseScheduleRoute } from "./routes/schedules/pause.ts";
import { previewChangeRoute } from "./routes/schedules/preview/preview-change.ts";
import { previewScheduleRoute } from "./routes/schedules/preview/preview-new.ts";
import { putScheduleRoute } from "./routes/schedules/put.ts";
import { resumeScheduleRoute } from "./routes/schedules/resume.ts";
import { diffRevisionsRoute } from "./routes/schedules/revision-diff.ts";
import { listRevisionsRoute } from "./routes/schedules/revisions.ts";
import { runNowRoute } from "./routes/schedules/run-now.ts";
import { listJobTypesRoute } from "./routes/service/job-types.ts";
import { getMeRoute } from "./routes/service/me.ts";
import { healthzRoute, metricsRoute, readyzRoute } from "./routes/service/probes.ts";
import { getStatsRoute } from "./routes/service/stats.ts";
import { getStatusRoute } from "./routes/service/status.ts";
import { listWorkersRoute } from "./routes/service/workers.ts";
import { createSessionRoute } from "./routes/session/create.ts";
import { deleteSessionRoute } from "./routes/session/delete.ts";
import { getSessionRoute } from "./routes/session/get.ts";
import { createSigningKeyRoute } from "./routes/signing-keys/create.ts";
import { listSigningKeysRoute } from "./routes/signing-keys/list.ts";
import { revokeSigningKeyRoute } from "./routes/signing-keys/revoke.ts";
import { rotateSigningKeyRoute } from "./routes/signing-keys/rotate.ts";
import { createTenantRoute } from "./routes/tenants/create.ts";
import { getTenantRoute } from "./routes/tenants/get.ts";
import { listTenantsRoute } from "./routes/tenants/list.ts";
import { patchTenantRoute } from "./routes/tenants/patch.ts";
import { createWebhookRoute } from "./routes/webhooks/create.ts";
import { deleteWebhookRoute } from "./routes/webhooks/delete.ts";
import { listDeliveriesRoute } from "./routes/webhooks/deliveries.ts";
import { getDeliveryRoute } from "./routes/webhooks/delivery.ts";
import { getWebhookRoute } from "./routes/webhooks/get.ts";
import { listWebhooksRoute } from "./routes/webhooks/list.ts";
import { patchWebhookRoute } from "./routes/webhooks/patch.ts";
import { redeliverRoute } from "./routes/webhooks/redeliver.ts";
import { testWebhookRoute } from "./routes/webhooks/send-test.ts";
import { disableWebhookRoute, enableWebhookRoute } from "./routes/webhooks/set-status.ts";
import { adoptRoute } from "./routes/worker/adopt.ts";
import { claimRoute } from "./routes/worker/claim.ts";
import { completeAttemptRoute } from "./routes/worker/complete.ts";
import { detachRoute } from "./routes/worker/detach.ts";
import { failAttemptRoute } from "./routes/worker/fail.ts";
import { heartbeatRoute } from "./routes/worker/heartbeat.ts";
import { logRoute } from "./routes/worker/log.ts";
import { pollRoute } from "./routes/worker/poll.ts";
import { progressRoute } from "./routes/worker/progress.ts";
import { putOutputRoute } from "./routes/worker/put-output.ts";
import { releaseRoute } from "./routes/worker/release.ts";
import { stageRoute } from "./routes/worker/stage.ts";
import { uploadRoute } from "./routes/worker/upload.ts";

/** Every endpoint, in the order of the reference page. Express and OpenAPI are both made from this table. */
export const ROUTES: readonly Route[] = [
  createScheduleRoute,
  listSchedulesRoute,
  previewScheduleRoute,
  getScheduleRoute,
  putScheduleRoute,
  patchScheduleRoute,
  deleteScheduleRoute,
  previewChangeRoute,
  listRevisionsRoute,
  diffRevisionsRoute,
  pauseScheduleRoute,
  resumeScheduleRoute,
  runNowRoute,
  listRunsOfScheduleRoute,
  getLedgerRoute,
  listCalendarsRoute,
  getCalendarRoute,
  putCalendarRoute,
  deleteCalendarRoute,
  listCalendarVersionsRoute,
  createRunRoute,
  listRunsRoute,
  getRunRoute,
  listAttemptsRoute,
  getLogsRoute,
  getResultRoute,
  getObjectRoute,
  cancelRunRoute,
  listEffectsRoute,
  getEffectRoute,
  resolveEffectRoute,
  listEmailTemplatesRoute,
  getEmailTemplateRoute,
  putEmailTemplateRoute,
  deleteEmailTemplateRoute,
  listDeadLettersRoute,
  listDeadLettersOfScheduleRoute,
  groupDeadLettersRoute,
  getDeadLetterRoute,
  dismissDeadLetterRoute,
  replayDeadLetterRoute,
  replayDeadLettersRoute,
  dismissDeadLettersRoute,
  backfillRoute,
  listWorkersRoute,
  pollRoute,
  claimRoute,
  heartbeatRoute,
  progressRoute,
  logRoute,
  uploadRoute,
  stageRoute,
  putOutputRoute,
  completeAttemptRoute,
  failAttemptRoute,
  releaseRoute,
  detachRoute,
  adoptRoute,
  listOperationsRoute,
  getOperationRoute,
  cancelOperationRoute,
  listAuditRoute,
  exportAuditRoute,
  getQuotasRoute,
  putQuotasRoute,
  putClassQuotaRoute,
  getUsageRoute,
  createApiKeyRoute,
  listApiKeysRoute,
  getApiKeyRoute,
  rotateApiKeyRoute,
  revokeApiKeyRoute,
  createWebhookRoute,
  listWebhooksRoute,
  getWebhookRoute,
  patchWebhookRoute,
  deleteWebhookRoute,
  enableWebhookRoute,
  disableWebhookRoute,
  testWebhookRoute,
  listDeliveriesRoute,
  getDeliveryRoute,
  redeliverRoute,
  createSigningKeyRoute,
  listSigningKeysRoute,
  rotateSigningKeyRoute,
  revokeSigningKeyRoute,
  createTenantRoute,
  listTenantsRoute,
  getTenantRoute,
  patchTenantRoute,
  getMeRoute,
  createSessionRoute,
  getSessionRoute,
  deleteSessionRoute,
  getStatusRoute,
  getStatsRoute,
  listJobTypesRoute,
  healthzRoute,
  readyzRoute,
  metricsRoute,
];
