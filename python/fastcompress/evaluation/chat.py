"""A conversation with a model that was finetuned on chats."""

from __future__ import annotations

from collections.abc import Iterator

from fastcompress.codec import ChatCodec, Codec
from fastcompress.data.chat import Message
from fastcompress.data.chat_rows import ChatRows
from fastcompress.errors import ConfigError, DataError, MismatchError
from fastcompress.evaluation.generate import LaneText, Sampler, draw_text
from fastcompress.models.protocol import LanguageModel
from fastcompress.models.tokens import TokenStepper, check_incremental


class Conversation:
    """Questions, and answers that see all that was said before, as far as the context holds it.

    Where the context is too short, the oldest questions and their answers are left out; the system message stays.

    Attributes:
        messages: What was said so far.
        num_forgotten: How many of them the last answer no longer saw.
    """

    def __init__(
        self,
        model: LanguageModel,
        codec: Codec,
        *,
        system: str | None = None,
        max_tokens: int = 500,
        sampler: Sampler | None = None,
    ) -> None:
        """Begin a conversation.

        Args:
            model: Finetuned on chats, with ``codec``.
            codec: The run's.
            system: A first message that is neither question nor answer.
            max_tokens: Most tokens of an answer; a quarter of the context, or less, is kept free for them.
            sampler: Draws the tokens; default: at temperature 1 with seed 0.

        Raises:
            ConfigError: ``max_tokens`` is below 1, or the codec's ids cannot be decoded as they come.
            MismatchError: The codec has no marks of chats, or is not the model's.
        """
        if not isinstance(codec, ChatCodec):
            raise MismatchError(f"a model with codec {codec.name} was not trained on chats; finetune it on chats first")
        if max_tokens < 1:
            raise ConfigError(f"max_tokens is {max_tokens}; it must be at least 1")
        check_incremental(codec)
        stepper = model.stepper(codec)
        assert isinstance(stepper, TokenStepper)
        self.codec, self.max_tokens, self.sampler = codec, max_tokens, sampler or Sampler()
        self.messages = [Message("system", system)] if system is not None else []
        self.num_forgotten = 0
        self._stepper, self._rows = stepper, ChatRows(codec, model.config.context_length)

    def ask(self, question: str) -> Iterator[str]:
        """Yield the answer in pieces of whole characters; once it is complete, both join ``messages``.

        Raises DataError, at once, if the question alone is longer than the context leaves room for, or the codec cannot
        spell it.
        """
        asked = Message("user", question)
        prompt = self._prompt(asked)
        self._stepper.begin_tokens([prompt])
        room = min(self.max_tokens, self._rows.context_length - len(prompt) + 1)
        return self._answer(asked, room)

    def _answer(self, asked: Message, room: int) -> Iterator[str]:
        answer = ""
        marks = range(self.codec.end_of_message - len(self.codec.role_ids), self.codec.end_of_message + 1)
        for _, text in draw_text(self._stepper, [self.sampler], [LaneText()], room, marks):
            answer += text
            yield text
        self.messages += [asked, Message("assistant", answer)]

    def _prompt(self, asked: Message) -> list[int]:
        """The ids up to the answer, with as many messages as leave room for one."""
        room = self._rows.context_length - min(self.max_tokens, self._rows.context_length // 4)
        num_system = int(bool(self.messages) and self.messages[0].role == "system")
        system, turns = self.messages[:num_system], self.messages[num_system:]
        for forgotten in range(0, len(turns) + 1, 2):
            prompt = self._rows.prompt((*system, *turns[forgotten:], asked))
            if len(prompt) <= room:
                self.num_forgotten = forgotten
                return prompt
        raise DataError(
            f"the question has {len(prompt)} tokens with its marks, more than the {room} that the context of "
            f"{self._rows.context_length} leaves; ask a shorter one"
        )
