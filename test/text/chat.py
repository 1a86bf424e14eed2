"""chat.py OUT: renders conversations by the chat templates of the wheel trl, with transformers, and by those beside it, and writes
OUT/chat.json: the templates, and for each case the text, or null where the template refuses, and what it marks as generated."""

import datetime, glob, importlib.util, json, os, sys
import transformers.utils.chat_template_utils as utils


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 2, 3, 4, 5)


utils.datetime = Fixed
golden = os.environ.get("GOLDEN")  # those beside it alone: testdata
dir = os.path.join(os.path.dirname(importlib.util.find_spec("trl").origin), "chat_templates")
kinds = ("llama", "qwen", "mistral", "gemma.", "gemma3.", "gemma_", "gemma3_", "phi", "deepseek", "glm", "cohere", "smol", "idefics", "llava", "lfm2", "gptoss", "nemotron")
templates = {os.path.basename(f): open(f, encoding="utf-8").read() for f in sorted(glob.glob(dir + "/*.jinja")) if not golden and os.path.basename(f).startswith(kinds)}
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
templates |= {os.path.basename(f): open(f, encoding="utf-8").read() for f in sorted(glob.glob(here + "/*.jinja"))}

user, bot, system = ({"role": "user", "content": " How are you?\n"}, {"role": "assistant", "content": "Fine — «thanks» & 'you'?  \n"}, {"role": "system", "content": "Be <brief>.\n"})
more = [{"role": "user", "content": "東京 😀"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes, \"it\" is."}]
call = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "id": "abcdef123", "function": {"name": "weather", "arguments": {"place": "Zürich & co", "days": 3, "deep": {"a": [1, 2.5, None, True]}}}}]}
answer = {"role": "tool", "name": "weather", "tool_call_id": "abcdef123", "content": "{\"t\": 21.5}"}
tools = [{"type": "function", "function": {"name": "weather", "description": "Tells \"it\" <now>", "parameters": {"type": "object", "properties": {"place": {"type": "string", "description": "où"},
    "days": {"type": "integer", "enum": [1, 2, 3]}}, "required": ["place"]}}}]
chats = {"one": [user], "two": [user, bot], "system": [system, user], "four": [system, user, bot, *more], "long": [user, bot, *more, user, bot], "answer first": [bot, user], "twice": [user, user],
    "only system": [system], "none": [], "thought": [user, {"role": "assistant", "content": "Ok.", "reasoning_content": "\nI think.\n"}, user],
    "call": [user, call, answer, bot], "called": [system, user, call, answer], "parts": [{"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": "?"}]}, bot],
    "strange": [{"role": "critic", "content": "No."}], "late system": [user, system, bot]}
if golden:
    chats = {k: chats[k] for k in ["system", "long", "call", "thought", "parts", "strange", "none"]}
cases = []
for name, source in templates.items():
    for title, chat in chats.items():
        for with_tools in [False, True] if title != "long" else [False]:
            for prompt in [False, True]:
                for extra in [{}, {"enable_thinking": False}] if "think" in source and not with_tools else [{}]:
                    extra = {"bos_token": "<s>", "eos_token": "</s>", **extra}
                    marks = "generation %}" in source and not prompt
                    try:
                        text, spans = utils.render_jinja_template([chat], tools=tools if with_tools else None, chat_template=source, add_generation_prompt=prompt,
                            return_assistant_tokens_mask=marks, **extra)
                        text, spans = text[0], spans[0] if marks else None
                    except Exception as e:
                        text, spans = None, str(e)
                    cases.append({"template": name, "title": title, "messages": chat, "tools": tools if with_tools else None, "prompt": prompt, "vars": extra, "text": text, "spans": spans})
json.dump({"templates": templates, "cases": cases}, open(os.path.join(sys.argv[1], "chat.json"), "w"), ensure_ascii=False, separators=(",", ":"))
print(f"{len(templates)} chat templates, {len(cases)} cases, {sum(c['text'] is None for c in cases)} of them refused")
