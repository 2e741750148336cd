"""The tests that say that they are witnesses, by the invariant they watch.

Written by `python -m tenure.runtime.testing.architecture`.
"""

WITNESSES: dict[str, tuple[str, ...]] = {
    "APPROVE-2": (
        "tests/test_turn_tools.py::test_stop_for_one_call_ends_the_turn_and_settles_the_others",
    ),
    "APPROVE-3": (
        "tests/test_turn_tools.py::test_denial_is_an_error_result_and_the_turn_goes_on",
    ),
    "APPROVE-4": (
        "tests/test_turn_tools.py::test_permission_for_other_arguments_runs_nothing",
    ),
    "APPROVE-6": (
        "tests/test_turn_recovery.py::test_restarted_owner_has_open_calls_settled_and_every_request_revoked",
        "tests/test_turn_stop.py::test_stop_revokes_what_the_turn_had_asked",
    ),
    "BUS-1": (
        "tests/test_asks.py::test_ask_is_answered_with_the_reply_of_the_step",
        "tests/test_asks.py::test_ask_of_an_address_that_nobody_has_is_answered_at_once",
        "tests/test_asks.py::test_full_lane_refuses_with_overloaded_and_takes_nothing",
        "tests/test_asks.py::test_second_answer_to_one_ask_is_a_dead_letter",
        "tests/test_asks.py::test_deadline_of_an_ask_that_was_not_begun_means_that_it_never_runs",
        "tests/test_asks.py::test_owner_that_forgets_its_asker_is_ended_by_the_deadline",
        "tests/test_asks.py::test_answer_after_the_deadline_is_a_dead_letter_and_harms_nobody",
        "tests/test_asks.py::test_what_a_cancelled_asker_wanted_never_runs_when_it_had_not_begun",
        "tests/test_asks.py::test_restart_answers_what_was_taken_and_keeps_what_waits",
        "tests/test_asks.py::test_stop_answers_what_was_taken_and_what_waits",
        "tests/test_asks.py::test_ask_while_a_stop_waits_for_effects_is_answered",
        "tests/test_asks.py::test_loss_of_the_seat_answers_everybody_who_waits_for_any_of_its_owners",
        "tests/test_asks.py::test_close_of_the_bus_answers_everybody",
        "tests/test_asks.py::test_owner_that_asks_one_that_dies_or_is_gone_is_answered",
        "tests/test_asks.py::test_forward_moves_the_duty_to_answer_to_the_other_owner",
        "tests/test_asks.py::test_forward_to_an_owner_that_dies_or_is_gone_is_answered",
        "tests/test_asks.py::test_forwarded_message_whose_asker_left_never_runs",
        "tests/test_asks.py::test_every_ask_is_answered_whatever_happens_around_it",
    ),
    "BUS-2": (
        "tests/test_asks.py::test_full_lane_refuses_with_overloaded_and_takes_nothing",
        "tests/test_mailbox.py::test_lanes_are_served_control_first_then_owners_then_commands",
        "tests/test_mailbox.py::test_command_lane_is_bounded_and_says_how_many_wait",
        "tests/test_mailbox.py::test_owner_mail_is_never_refused",
        "tests/test_mailbox.py::test_command_is_served_at_least_every_64_messages",
        "tests/test_mailbox.py::test_stop_overtakes_a_command_however_much_came_before_it",
        "tests/test_mailbox.py::test_progress_that_waits_is_joined_and_nothing_of_it_is_lost",
        "tests/test_mailbox.py::test_commands_are_never_joined",
        "tests/test_mailbox.py::test_control_message_overtakes_what_waits_and_is_not_refused_by_a_full_lane",
        "tests/test_mailbox.py::test_mail_between_owners_reaches_an_owner_whose_command_lane_is_full",
        "tests/test_mailbox.py::test_flood_of_owner_mail_does_not_starve_those_who_wait",
    ),
    "SESSION-1": (
        "tests/test_session_swap.py::test_swaps_run_one_after_the_other_in_the_order_in_which_they_came",
        "tests/test_session_swap.py::test_start_under_a_swap_waits_and_runs_in_the_session_that_the_seat_has_then",
    ),
    "SESSION-2": (
        "tests/test_session_appends.py::test_append_with_another_token_is_refused_with_the_current_one",
        "tests/test_session_appends.py::test_cancel_with_another_token_stops_nothing",
        "tests/test_session_swap.py::test_append_after_the_commit_is_stale_and_lands_nowhere",
    ),
    "SESSION-3": (
        "tests/test_session_appends.py::test_receipt_comes_when_the_entries_are_durable_and_names_them",
        "tests/test_session_appends.py::test_failed_batch_leaves_no_gap_in_the_chain_and_tells_all_of_it",
        "tests/test_session_appends.py::test_write_that_nobody_can_vouch_for_closes_the_session_for_writing",
        "tests/test_transcript_appending.py::test_append_is_one_write_and_one_sync_before_the_receipt",
        "tests/test_transcript_appending.py::test_what_was_receipted_survives_a_power_loss",
        "tests/test_transcript_appending.py::test_file_that_changed_outside_is_told_and_not_written",
        "tests/test_transcript_faults.py::test_short_write_is_cut_back_and_the_next_append_stands_alone",
        "tests/test_transcript_faults.py::test_full_disk_refuses_and_the_session_goes_on_once_there_is_room",
        "tests/test_transcript_faults.py::test_failed_sync_is_uncertain_and_never_tried_again",
        "tests/test_transcript_faults.py::test_session_is_closed_for_writing_after_a_failed_sync",
        "tests/test_transcript_faults.py::test_failed_creation_leaves_no_file_and_can_be_tried_again",
        "tests/test_transcript_faults.py::test_no_fault_loses_a_receipted_entry_or_leaves_a_refused_one",
    ),
    "SESSION-4": (
        "tests/test_session_swap.py::test_swap_loads_then_drains_then_commits_then_lets_the_old_session_go",
        "tests/test_session_swap.py::test_target_that_cannot_be_loaded_leaves_the_old_session_as_it_was",
        "tests/test_session_swap.py::test_commit_that_fails_arms_the_queue_again_and_lets_the_target_go",
    ),
    "SESSION-5": (
        "tests/test_explore.py::test_every_order_of_two_appends_under_a_swap_is_receipted_before_the_pointer_moves",
        "tests/test_session_swap.py::test_append_in_flight_lands_in_the_old_session_and_is_receipted_so",
        "tests/test_session_swap.py::test_appends_that_wait_behind_one_in_flight_are_all_written_before_the_commit",
        "tests/test_transcript_appending.py::test_session_whose_claim_was_taken_away_is_not_written",
        "tests/test_transcript_opening.py::test_session_is_live_in_one_process_only",
        "tests/test_transcript_opening.py::test_session_is_live_in_one_seat_only_and_the_refusal_names_the_seat",
        "tests/test_transcript_opening.py::test_unwritten_session_is_nobody_elses",
    ),
    "SESSION-6": (
        "tests/test_session_appends.py::test_appends_that_come_during_a_write_form_the_next_batch_as_one_chain",
        "tests/test_transcript_appending.py::test_append_behind_another_entry_than_the_last_is_refused",
        "tests/test_transcript_appending.py::test_two_appends_at_once_make_one_chain",
        "tests/test_transcript_appending.py::test_every_entry_of_many_batches_is_on_the_path",
    ),
    "SESSION-7": (
        "tests/test_transcript_reading.py::test_corrupt_line_in_the_middle_hides_nothing_else",
        "tests/test_transcript_reading.py::test_child_of_a_lost_entry_hangs_on_the_readable_entry_before_it",
        "tests/test_transcript_reading.py::test_parent_that_stands_behind_its_child_does_not_make_a_circle",
        "tests/test_transcript_reading.py::test_altered_record_is_counted_and_not_served",
        "tests/test_transcript_repair.py::test_torn_tail_is_kept_aside_and_cut_at_every_byte",
    ),
    "SESSION-8": (
        "tests/test_transcript_catalogue.py::test_reads_never_write_and_never_lock",
        "tests/test_transcript_catalogue.py::test_older_dialect_is_shown_without_being_converted",
    ),
    "SUP-1": (
        "tests/test_asks.py::test_restart_answers_what_was_taken_and_keeps_what_waits",
        "tests/test_asks.py::test_loss_of_the_seat_answers_everybody_who_waits_for_any_of_its_owners",
    ),
    "TURN-1": (
        "tests/test_turn_start.py::test_second_start_is_refused_with_the_turn_that_runs",
        "tests/test_turn_start.py::test_second_start_that_may_wait_begins_when_the_first_has_ended",
    ),
    "TURN-2": (
        "tests/test_turn_recovery.py::test_stop_that_overtook_its_start_during_a_restart_answers_it",
        "tests/test_turn_start.py::test_stop_that_came_before_its_turn_answers_the_start",
        "tests/test_turn_stop.py::test_every_cause_stops_a_turn_and_is_said_at_its_end",
        "tests/test_turn_stop.py::test_stop_of_a_turn_that_is_over_touches_nothing",
        "tests/test_turn_stop.py::test_stop_of_another_sessions_turn_touches_nothing",
    ),
    "TURN-3": (
        "tests/test_turn_stop.py::test_stop_gives_the_queue_back_and_nothing_of_it_starts",
    ),
    "TURN-4": (
        "tests/test_turn_model.py::test_late_words_of_an_ended_turn_never_reach_the_next_one",
        "tests/test_turn_model.py::test_late_words_after_the_last_turn_change_nothing",
    ),
    "TURN-6": (
        "tests/test_session_appends.py::test_start_with_another_token_starts_nothing",
    ),
    "TURN-7": (
        "tests/test_transcript_context.py::test_call_without_a_result_gets_one_in_the_snapshot",
        "tests/test_transcript_context.py::test_result_without_its_call_is_not_shown",
        "tests/test_transcript_context.py::test_second_result_of_a_call_is_not_shown",
        "tests/test_transcript_context.py::test_pairs_are_whole_whatever_was_appended",
        "tests/test_transcript_repair.py::test_open_calls_get_one_result_each_when_the_session_is_opened",
        "tests/test_turn_stop.py::test_stop_at_each_point_ends_the_turn_with_every_call_settled_in_order",
    ),
    "TURN-8": (
        "tests/test_turn_saves.py::test_model_is_called_only_when_the_prompt_is_durable",
        "tests/test_turn_saves.py::test_tools_run_only_when_the_models_message_is_durable",
        "tests/test_turn_saves.py::test_next_model_call_waits_for_the_results_to_be_durable",
        "tests/test_turn_saves.py::test_prompt_that_is_not_durable_starts_no_turn",
        "tests/test_turn_saves.py::test_answer_that_is_not_durable_ends_the_turn_and_runs_no_tool",
    ),
    "TURN-9": (
        "tests/test_turn_stop.py::test_stop_at_each_point_ends_the_turn_with_every_call_settled_in_order",
        "tests/test_turn_stop.py::test_drain_is_answered_only_when_nothing_runs_and_keeps_the_queue",
    ),
}
