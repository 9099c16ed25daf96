"""Effects and questions of core to messages and back."""

from __future__ import annotations

from agentvisor.core.effects import By, Effect, EffectState, Place
from agentvisor.core.ids import CheckpointId, Namespace
from agentvisor.core.questions import Answer, Ask, Question, Questions
from agentvisor.protocol.interrupts import terms_from_message, terms_to_message
from agentvisor.protocol.v1 import store_pb2


def place_of(message: store_pb2.EffectRequest | store_pb2.Effect) -> Place:
    """Where an effect belongs."""
    return Place(
        message.scope,
        message.key,
        Namespace(message.namespace),
        CheckpointId(message.checkpoint_id) if message.checkpoint_id else None,
        CheckpointId(message.root_id) if message.root_id else None,
    )


def effect_to_message(effect: Effect) -> store_pb2.Effect:
    place, by = effect.place, effect.by
    return store_pb2.Effect(
        scope=place.scope,
        key=place.key,
        state=store_pb2.EffectState.ValueType(effect.state),
        run_id=by.run_id,
        attempt=by.attempt,
        intended_at_ms=by.now_ms,
        result=effect.result,
        error_type=effect.error_type,
        error_message=effect.error_message,
        unkept=effect.unkept,
        asked=effect.asked,
        awaited=effect.awaited,
        answers=effect.answers,
        namespace=place.namespace,
        checkpoint_id=place.checkpoint_id or "",
        root_id=place.root_id or "",
    )


def effect_from_message(message: store_pb2.Effect) -> Effect:
    return Effect(
        place_of(message),
        EffectState(message.state),
        By(message.run_id, message.attempt, message.intended_at_ms),
        result=message.result,
        error_type=message.error_type,
        error_message=message.error_message,
        unkept=message.unkept,
        asked=message.asked,
        awaited=message.awaited,
        answers=message.answers,
    )


def question_to_message(question: Question) -> store_pb2.Question:
    return store_pb2.Question(
        id=question.id,
        name=question.name,
        kind=question.kind,
        value=question.value,
        created_at_ms=question.created_at_ms,
        answer=question.answer,
        answered_by=question.answered_by,
        terms=terms_to_message(question.terms),
        run_id=question.run_id,
    )


def question_from_message(message: store_pb2.Question) -> Question:
    return Question(
        message.id,
        message.name,
        message.kind,
        message.value,
        message.created_at_ms,
        message.answer if message.HasField("answer") else None,
        message.answered_by,
        terms_from_message(message.terms),
        message.run_id,
    )


def questions_to_message(questions: Questions) -> store_pb2.Questions:
    asked = [question_to_message(one) for one in questions.asked.values()]
    return store_pb2.Questions(input=questions.input, questions=asked)


def questions_from_message(message: store_pb2.Questions) -> Questions:
    asked = [question_from_message(one) for one in message.questions]
    return Questions(message.input, {one.id: one for one in asked})


def ask_to_message(ask: Ask) -> store_pb2.Questions:
    """A question as it is journalled: with the input, which counts where it is the first."""
    return store_pb2.Questions(input=ask.input, questions=[question_to_message(ask.question)])


def ask_from_message(message: store_pb2.Questions) -> Ask:
    return Ask(question_from_message(message.questions[0]), message.input)


def answer_from_message(message: store_pb2.Answer) -> Answer:
    return Answer(message.id, message.answer, message.run_id)
