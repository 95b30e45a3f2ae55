-- Qianfan of Baidu, version 2.

return {
  contract = 1,
  name = "baidu",
  version = "1.0.0",
  extends = "openai",
  base_url = "https://qianfan.baidubce.com/v2",
  options = {
    max_tokens = "max_tokens",
    rules = json.null,
    thinking = { off = { enable_thinking = false }, on = { enable_thinking = true } },
    codes = {
      invalid_iam_token = "auth", invalid_appid = "auth", access_denied = "auth", invalid_model = "model_not_found",
      tokens_too_long = "context_overflow", characters_too_long = "context_overflow", unsafe_request = "content_blocked",
      rpm_rate_limit_exceeded = "rate_limit", tpm_rate_limit_exceeded = "rate_limit", preemptible_rate_limit_exceeded = "rate_limit",
      account_arrears = "quota_exhausted", ["coding_plan_hour_quota_exceeded"] = "quota_exhausted",
      -- The numbers of the old interface.
      ["110"] = "auth", ["111"] = "auth", ["6"] = "auth", ["17"] = "quota_exhausted", ["19"] = "quota_exhausted", ["18"] = "rate_limit",
      ["336501"] = "rate_limit", ["336502"] = "rate_limit", ["336100"] = "overloaded", ["336000"] = "server",
      ["336003"] = "invalid_request", ["336007"] = "context_overflow", ["336103"] = "context_overflow",
    },
  },
  capabilities = { audio = false },
}
